// SPDX-License-Identifier: Apache-2.0
// usage: node pictures.mjs PAGE.html FOLDER
// The pictures of the documentation (scripts/report-pictures).
import assert from 'node:assert/strict';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

import {inBrowser, phone} from './browser.mjs';

const [file, folder] = process.argv.slice(2);
const address = pathToFileURL(file).href;
const drawn = (page) => page.waitForFunction(() => Array.from(document.querySelectorAll('figure[data-chart]'))
  .every((one) => one.hidden || one.classList.contains('drawn')));

await inBrowser(address, {viewport: {width: 1280, height: 900}}, async (page, told) => {
  await drawn(page);
  await page.evaluate(() => {  // what is between is left out
    for (const section of document.querySelectorAll('main > section'))
      if (!section.querySelector('#verdict, #search, #serve, #trade-offs')) section.remove();
  });
  await page.evaluate(() => scrollTo(0, 0));
  await page.waitForTimeout(500);  // charts take their new width
  const end = await page.locator('figure[data-chart=trade]').boundingBox();
  await page.screenshot({path: path.join(folder, 'report.png'), fullPage: true, clip: {x: 0, y: 0, width: 1280, height: Math.ceil(end.y + end.height + 12)}});
  assert.deepEqual(told, []);
});
await inBrowser(address, {viewport: phone, colorScheme: 'dark', hasTouch: true, isMobile: true}, async (page, told) => {
  await drawn(page);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), phone.width);
  await page.screenshot({path: path.join(folder, 'report-phone.png'), fullPage: true, clip: {x: 0, y: 0, width: phone.width, height: 1150}});
  assert.deepEqual(told, []);
});
