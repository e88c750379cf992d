// SPDX-License-Identifier: Apache-2.0
// usage: node page_test.mjs CASE PAGE.html|http://... [FOLDER for pictures]
// One case of the tests of the report page in a browser (tests/integration/browser_test.cpp runs them). Exit code 0: it
// holds; 1: it does not, and standard error says what.
import assert from 'node:assert/strict';
import {readFile, stat, writeFile} from 'node:fs/promises';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

import {desk, inBrowser, lowContrast, phone, unnamed} from './browser.mjs';

const [which, file, pictures] = process.argv.slice(2);
const address = file.startsWith('http:') ? file : pathToFileURL(file).href;
const settled = (page) => page.waitForFunction(() => Array.from(document.querySelectorAll('figure[data-chart]'))
  .every((one) => one.hidden || one.classList.contains('drawn')));
const centre = async (mark) => {
  const place = await mark.boundingBox();
  return [place.x + place.width / 2, place.y + place.height / 2];
};
const box = (page, one) => page.locator(one).boundingBox();
const rows = (page) => page.locator('#results tbody tr:visible').count();
const said = (page, chart) => page.locator(`figure[data-chart=${chart}] .chart-said`).textContent();
const picture = async (page, name) => {
  if (pictures) await page.screenshot({path: path.join(pictures, `${name}.png`), fullPage: true});
};
// Nothing wider than the window; no frame that scrolls but tables and text of others.
const tooWide = (page) => page.evaluate(() => {
  const width = document.documentElement.clientWidth;
  const result = document.documentElement.scrollWidth > width ? ['the page: ' + document.documentElement.scrollWidth] : [];
  for (const one of document.querySelectorAll('figure, figure > *, select, input')) {
    const box = one.getBoundingClientRect();
    if (box.width > 0 && (box.right > width + 0.5 || box.left < -0.5)) result.push(one.tagName + '.' + one.className + ': to ' + box.right);
    if (!one.matches('select, input') && one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0) result.push(`${one.tagName}.${one.className} scrolls: ${one.scrollWidth} in ${one.clientWidth}`);
  }
  return result;
});

// The test of a page that is drawn, and that has complained of nothing at the end.
const drawn = (options, test) => inBrowser(address, options, async (page, told) => {
  await settled(page);
  await test(page);
  assert.deepEqual(told, []);
});

const cases = {
  // The page as it opens: silent and small; nothing runs in it but its own scripts.
  opens: () => inBrowser(address, {}, async (page, told) => {
    await settled(page);
    assert.ok(await page.locator('figure.drawn[data-chart]:visible').count() > 0);
    assert.ok((await stat(file)).size < 2e6, 'a page of at most 2 MB');
    assert.equal(await page.locator('img').count(), 0);
    assert.match(await page.title(), /^[a-z]+: /);
    const [verdict, links] = [await box(page, '.verdict'), await box(page, 'nav')];
    assert.ok(links.x > verdict.x + verdict.width, 'links beside the verdict');
    await picture(page, 'light');
    assert.deepEqual(told, []);
    await page.evaluate(() => {
      document.body.append(Object.assign(document.createElement('script'), {textContent: 'document.title = "taken"'}));
      document.body.append(Object.assign(document.createElement('p'), {id: 'styled'}));
      document.getElementById('styled').setAttribute('style', 'color: red');
    });
    assert.match(await page.title(), /^[a-z]+: /, 'a script that is not its own');
    assert.equal(await page.evaluate(() => document.getElementById('styled').style.color), '', 'a style that is not its own');
  }),

  tables: () => drawn({}, async (page) => {
    const all = await rows(page);
    await page.fill('#filter', 'fp8');
    const some = await rows(page);
    assert.ok(some > 0 && some < all);
    assert.equal(await page.textContent('#shown'), `${some} of ${all} rows: with this text`);
    await page.fill('#filter', '');
    assert.equal(await rows(page), all);
    assert.equal(await page.textContent('#shown'), '');
    const label = page.locator('#chart-trade .label.x');
    const before = await label.textContent();
    await page.selectOption('#trade-x', {index: 3});
    assert.notEqual(await label.textContent(), before);
    assert.equal(await label.textContent(), await page.locator('#trade-x option:checked').textContent());
    const saved = page.waitForEvent('download');
    await page.click('#get-json');
    const report = JSON.parse(await readFile(await (await saved).path(), 'utf8'));
    assert.ok(report.failures.some((one) => one.kind === 'out_of_memory'));
  }),

  // Pointing at marks and choosing them.
  mouse: () => drawn({}, async (page) => {
    const chart = page.locator('#chart-trade');
    await chart.scrollIntoViewIfNeeded();
    const at = await centre(chart.locator('.mark.passing:visible').nth(3));
    await page.mouse.move(...at);
    const tip = page.locator('figure[data-chart=trade] .tip');
    await tip.filter({hasText: 'TTFT'}).waitFor();
    assert.equal(await tip.locator('img, b, script').count(), 0);
    await page.mouse.click(...at);
    assert.equal(await page.locator('#results tr.chosen').count(), 1);
    const ticks = () => chart.locator('text').allTextContents();
    const whole = await ticks();
    await page.selectOption('#trade-x', {index: 4});
    assert.notDeepEqual(await ticks(), whole);
    assert.match(await chart.getAttribute('aria-label'), new RegExp('against ' + (await page.locator('#trade-x option:checked').textContent()).replace(/[^a-zA-Z ]/g, '.')));
  }),

  // All of it without a mouse.
  keys: () => drawn({}, async (page) => {
    for (const name of ['path', 'trade', 'latency-0']) {
      const chart = page.locator('#chart-' + name);
      assert.equal(await chart.getAttribute('aria-roledescription'), 'chart', name);
      await chart.focus();
      await page.keyboard.press('ArrowRight');
      const first = await said(page, name);
      assert.match(first, /^1 of \d+: ./, name);
      await page.keyboard.press('ArrowRight');
      assert.match(await said(page, name), /^2 of /, name);
      await page.keyboard.press('Home');
      assert.equal(await said(page, name), first, name);
      await page.keyboard.press('End');
      const [, at, of] = (await said(page, name)).match(/^(\d+) of (\d+)/);
      assert.equal(at, of, name);
    }
    await page.locator('#chart-trade').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    assert.match(await said(page, 'trade'), /Marked in the table/);
    assert.equal(await page.locator('#results tr.chosen').count(), 1);
  }),

  // As wide as the screen of a phone, in both directions of it.
  phone: async () => {
    for (const width of [360, 375, 420]) await drawn({viewport: {...phone, width}, hasTouch: true, isMobile: true}, async (page) => {
      assert.deepEqual(await tooWide(page), [], String(width));
      for (const figure of await page.locator('figure[data-chart]:visible').all()) {
        const box = await figure.boundingBox();
        const drawing = await figure.locator(':scope > svg, :scope > .intervals').first().boundingBox();
        assert.ok(drawing.width > box.width - 24 && drawing.width <= box.width, `${await figure.getAttribute('data-chart')}: ${drawing.width} in ${box.width}`);
      }
      const [verdict, links] = [await box(page, '.verdict'), await box(page, 'nav')];
      assert.ok(links.y > verdict.y + verdict.height, 'links below the verdict');
      if (width === 375) await picture(page, 'phone');
    });
    await inBrowser(address, {viewport: phone, colorScheme: 'dark'}, async (page) => {
      await settled(page);
      await page.setViewportSize({width: 812, height: 375});
      await settled(page);
      assert.deepEqual(await tooWide(page), []);
    });
  },

  // A finger that swipes over a chart moves the page and changes nothing in it; a tap is a click.
  swipe: () => drawn({viewport: phone, hasTouch: true, isMobile: true}, async (page) => {
    const all = await rows(page);
    const hand = await page.context().newCDPSession(page);
    for (const name of ['path', 'trade']) {
      const chart = page.locator('#chart-' + name);
      await chart.evaluate((one) => one.scrollIntoView({block: 'start'}));
      const ticks = await chart.locator('text').allTextContents();
      const before = await page.evaluate(() => scrollY);
      const place = await chart.boundingBox();
      const [x, y] = [place.x + 30, place.y + Math.min(place.height - 20, 300)];
      await hand.send('Input.dispatchTouchEvent', {type: 'touchStart', touchPoints: [{x, y}]});
      for (let step = 1; step <= 10; ++step)
        await hand.send('Input.dispatchTouchEvent', {type: 'touchMove', touchPoints: [{x: x + 4 * step, y: y - 20 * step}]});
      await hand.send('Input.dispatchTouchEvent', {type: 'touchEnd', touchPoints: []});
      await page.waitForFunction((from) => scrollY > from + 50, before);
      assert.equal(await rows(page), all, name);
      assert.equal(await said(page, name), '', name);
      assert.deepEqual(await chart.locator('text').allTextContents(), ticks, name);
    }
    const mark = page.locator('#chart-trade .mark.passing:visible').nth(3);
    for (let at = -1; at !== (at = await page.evaluate(() => scrollY));) await page.waitForTimeout(300);  // a page that still glides takes no tap
    await mark.evaluate((one) => one.scrollIntoView({block: 'center'}));
    await page.touchscreen.tap(...await centre(mark));
    await page.waitForFunction(() => document.querySelectorAll('#results tr.chosen').length === 1);
  }),

  // Contrast, and names for a screen reader, in light and dark.
  access: async () => {
    for (const colorScheme of ['light', 'dark']) await drawn({colorScheme}, async (page) => {
      assert.deepEqual(await lowContrast(page), [], colorScheme);
      const tree = await unnamed(page);
      assert.deepEqual(tree.problems, []);
      assert.ok(tree.roles.some(([role, name]) => role === 'application' && /^Path of the search/.test(name)));
      if (colorScheme === 'dark') await picture(page, 'dark');
      // The system's colours change while the page is open.
      await page.emulateMedia({colorScheme: colorScheme === 'light' ? 'dark' : 'light'});
      let low;
      for (let tries = 0; tries < 50 && (tries === 0 || low.length > 0); ++tries) {  // a busy machine draws late
        await page.waitForTimeout(300);
        low = await lowContrast(page);
      }
      assert.deepEqual(low, [], colorScheme + ', changed');
    });
  },

  // On paper, and without JavaScript: drawings that need no program.
  paper: async () => {
    await drawn({colorScheme: 'dark'}, async (page) => {
      await page.emulateMedia({media: 'print'});
      for (const id of ['limits', 'hour', 'certain', 'study']) assert.ok(await page.locator(`#${id}`).isVisible(), id);
      assert.ok(await page.locator('.verdict').isVisible());
      assert.equal(await page.locator('figure:visible, #results:visible, nav:visible').count(), 0);
      assert.deepEqual(await lowContrast(page), []);
      const pdf = await page.pdf({format: 'A4', preferCSSPageSize: true});
      assert.equal(pdf.toString('latin1').match(/\/Type\s*\/Page\b/g).length, 1);  // for a colleague
      if (pictures) await writeFile(path.join(pictures, 'print.pdf'), pdf);
    });
    await inBrowser(address, {javaScriptEnabled: false}, async (page) => {
      for (const figure of await page.locator('figure[data-chart]').all())
        assert.ok(await figure.locator(':scope > svg, :scope > .intervals').first().isVisible());
      assert.equal(await page.locator('.drawn').count(), 0);
    });
  },

  // While a study runs: what a person has chosen, and where the keys and the mouse are, stays when the page renews itself.
  live: () => inBrowser(address, {}, async (page, told) => {
    await page.waitForSelector('#trade-x');
    await settled(page);
    const renewed = async () => {
      const before = await page.locator('#results tbody tr').count();
      await page.waitForFunction((count) => document.querySelectorAll('#results tbody tr').length > count, before);
      await settled(page);
    };
    await page.selectOption('#trade-x', {index: 2});
    const chosen = await page.inputValue('#trade-x');
    await page.locator('#filter').pressSequentially('fp8');
    await page.keyboard.press('ArrowLeft');
    await renewed();
    assert.equal(await page.inputValue('#trade-x'), chosen);
    assert.equal(await page.inputValue('#filter'), 'fp8');
    assert.deepEqual(await page.evaluate(() => [document.activeElement.id, document.activeElement.selectionStart]), ['filter', 2]);
    await page.keyboard.press('Backspace');
    assert.equal(await page.inputValue('#filter'), 'f8', 'typing goes on where it was');
    await page.fill('#filter', '');
    const head = page.locator('#results thead th button').nth(1);
    await head.focus();
    const title = await head.textContent();
    await renewed();
    assert.deepEqual(await page.evaluate(() => [document.activeElement.tagName, document.activeElement.textContent]), ['BUTTON', title]);
    assert.ok(await page.evaluate(() => document.querySelectorAll('#chart-trade .mark').length) > 0);
    await page.locator('#chart-path').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    assert.match(await said(page, 'path'), /^2 of \d+: Trial 1:/);
    await renewed();
    assert.equal(await page.evaluate(() => document.activeElement.id), 'chart-path');
    await page.waitForFunction(() => /^2 of \d+: Trial 1:/.test(document.querySelector('figure[data-chart=path] .chart-said').textContent));
    await page.keyboard.press('ArrowRight');
    assert.match(await said(page, 'path'), /^3 of \d+: Trial 2:/);
    // The mouse rests on a mark: what it says stays, and its buttons wait for nobody else.
    const mark = page.locator('#chart-path .mark').first();
    await mark.scrollIntoViewIfNeeded();
    await page.mouse.move(...await centre(mark));
    const tip = page.locator('figure[data-chart=path] .tip', {hasText: /^Trial \d+/});
    await tip.waitFor();
    await renewed();
    await tip.waitFor();
    // The end of the run, with the last trial.
    await page.mouse.move(0, 0);
    await page.waitForFunction(() => /^The run has ended: /.test(document.getElementById('live-trial').textContent), {timeout: 60000});
    await page.waitForFunction(() => document.body.textContent.includes('12, 1 failed'));
    assert.deepEqual(told.filter((one) => !one.includes('ERR_')), []);
  }),

  // Of a study that nothing came of.
  failed: () => drawn({}, async (page) => {
    assert.match(await page.textContent('.verdict'), /Nothing can be recommended/);
    assert.ok((await page.textContent('main')).includes('<img src=x'), 'the words of the log');
    assert.equal(await page.locator('img').count(), 0);
    assert.match(await page.title(), /^[a-z]+: /);
    assert.deepEqual(await lowContrast(page), []);
    await picture(page, 'failed');
  }),
};

assert.ok(cases[which], 'a case: ' + Object.keys(cases).join(', '));
await cases[which]();
console.log('holds: ' + which);
