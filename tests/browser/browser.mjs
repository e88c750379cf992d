// SPDX-License-Identifier: Apache-2.0
// Debian's Chromium for the tests of the report page. playwright-core is where the build has put it: $SERVETUNE_BROWSER_PACKAGES.
import {createRequire} from 'node:module';
import path from 'node:path';

const {chromium} = createRequire(path.join(process.env.SERVETUNE_BROWSER_PACKAGES, 'package.json'))('playwright-core');

export const phone = {width: 375, height: 812};
export const desk = {width: 1200, height: 900};

// Runs `action(page, told)` in a window of its own; told: what the page said or asked for that it should not have.
export const inBrowser = async (address, options, action) => {
  const browser = await chromium.launch({executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu']});
  try {
    const context = await browser.newContext({viewport: desk, reducedMotion: 'reduce', ...options});
    const page = await context.newPage();
    page.setDefaultTimeout(20000);
    const told = [];
    page.on('console', (message) => told.push(message.type() + ': ' + message.text()));
    page.on('pageerror', (error) => told.push('error: ' + error.message));
    page.on('dialog', (dialog) => { told.push('dialog: ' + dialog.message()); dialog.dismiss(); });
    page.on('request', (request) => { if (!request.url().startsWith(new URL(address).protocol === 'file:' ? address.split('#')[0] : new URL(address).origin)
      && !request.url().startsWith('data:')) told.push('request: ' + request.url()); });
    await page.goto(address);
    return await action(page, told);
  } finally {
    await browser.close();
  }
};

// Text and marks that do not stand out from their ground, by WCAG 2.2 (1.4.3: 4.5, large text 3; 1.4.11: 3 for marks).
export const lowContrast = (page) => page.evaluate(() => {
  const parsed = (text) => {
    const numbers = (text.match(/[\d.]+/g) || []).map(Number);
    return numbers.length >= 3 ? [numbers[0], numbers[1], numbers[2], numbers.length > 3 ? numbers[3] : 1] : null;
  };
  const light = ([r, g, b]) => {
    const part = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = parsed(getComputedStyle(one).backgroundColor);
      if (color && color[3] > 0.99) return color;
    }
    return [255, 255, 255, 1];
  };
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const result = [];
  const check = (element, color, least, what) => {
    const parts = parsed(color);
    if (!parts || parts[3] < 0.99) return;
    const found = ratio(parts, ground(element));
    if (found < least) result.push(`${what}: ${found.toFixed(2)} of ${color}`);
  };
  const seen = (element) => element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}) && element.getBoundingClientRect().width > 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'title'].includes(element.tagName) || !seen(element)) continue;
    const style = getComputedStyle(element);
    const inDrawing = element instanceof SVGElement;
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    check(element, inDrawing ? style.fill : style.color, large ? 3 : 4.5, 'text "' + node.textContent.trim().slice(0, 40) + '"');
  }
  for (const mark of document.querySelectorAll('figure .mark, figure .line, .intervals .dot, .swatch')) {
    const style = getComputedStyle(mark);
    if (!seen(mark) || Number(style.opacity) < 1 || Number(style.fillOpacity) < 1 || Number(style.strokeOpacity) < 1) continue;
    const fills = (mark instanceof HTMLElement ? [style.backgroundColor] : [style.fill, style.stroke]).map(parsed).filter((one) => one && one[3] > 0.99);
    const best = Math.max(0, ...fills.map((one) => ratio(one, ground(mark instanceof HTMLElement ? mark.parentElement : mark))));
    if (fills.length > 0 && best < 3) result.push(`mark ${mark.outerHTML.slice(0, 80)}: ${best.toFixed(2)}`);
  }
  return [...new Set(result)];
});

// What a screen reader is told: things without a name, and headings that skip a level.
export const unnamed = async (page) => {
  const session = await page.context().newCDPSession(page);
  await session.send('Accessibility.enable');
  const {nodes} = await session.send('Accessibility.getFullAXTree');
  const needs = new Set(['button', 'link', 'combobox', 'searchbox', 'textbox', 'img', 'image', 'region', 'navigation', 'group', 'DisclosureTriangle', 'table']);
  const result = [];
  let level = 0;
  for (const node of nodes) {
    if (node.ignored) continue;
    const role = node.role && node.role.value;
    const name = node.name && node.name.value || '';
    if (needs.has(role) && !name.trim()) {
      const {node: of} = await session.send('DOM.describeNode', {backendNodeId: node.backendDOMNodeId});
      result.push(`${role} without a name: ${of.localName} ${JSON.stringify(of.attributes)}`);
    }
    if (role === 'heading') {
      const property = (node.properties || []).find((one) => one.name === 'level');
      const now = property ? property.value.value : 0;
      if (now > level + 1) result.push(`heading "${name}" of level ${now} below level ${level}`);
      level = now;
    }
  }
  return {problems: result, nodes: nodes.filter((node) => !node.ignored).length,
    roles: nodes.filter((node) => !node.ignored).map((node) => [node.role && node.role.value, node.name && node.name.value])};
};
