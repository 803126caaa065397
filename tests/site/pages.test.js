// Every page renders: served or as a file, in both themes, on narrow and wide screens, accessibly.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { pathToFileURL } = require('url');
const { setup, accessible } = require('./check.js');
const { PROJECT_PAGES, pages, settled } = require('./pages.js');

const here = setup({real: process.env.SITE, bare: process.env.BARE_SITE});

/* How each page is looked at, one after the other: widths, themes. */
const LOOKS = [[1920, 'light'], [390, 'dark']];

for (const [name, address, expected] of pages(process.env.SITE)) {
    test(`${name} renders on any width, in both themes, accessibly`, () => here.visit(async function (page) {
        await page.goto(here.sites.real + address);
        await page.locator(expected).first().waitFor();
        await settled(page);
        for (const [width, colorScheme] of LOOKS) {
            await page.emulateMedia({colorScheme});
            await page.setViewportSize({width, height: 900});
            if (PROJECT_PAGES.includes(name)) {
                await page.waitForTimeout(300); // charts are drawn anew
                await page.locator(expected).first().waitFor();
                await fits(page, `${name}-display`);
                await accessible(page);
                assert.equal(
                    await page.evaluate((id) => getComputedStyle(document.getElementById(id)).backgroundColor, `${name}-display`),
                    colorScheme === 'dark' ? 'rgb(22, 24, 27)' : 'rgb(255, 255, 255)');
            }
            // asv draws its graphs anew a moment later.
            await page.waitForFunction((most) => document.documentElement.scrollWidth <= most, width, {timeout: 10000}).catch(
                () => assert.fail(`${width} pixels are not enough`));
        }
    }, {viewport: {width: LOOKS[0][0], height: 900}}));

    test(`${name} renders from a file`, () => here.visit(async function (page) {
        await page.goto(pathToFileURL(process.env.SITE) + '/index.html' + address);
        await page.locator(expected).first().waitFor();
        await page.waitForLoadState('networkidle');
        assert.ok(await page.locator('#error').isHidden());
    }));
}

/* Nothing of a page sticks out. */
async function fits(page, id) {
    const overflow = await page.evaluate((one) => Math.max(
        ...[...document.querySelectorAll(`#${one} :is(select, svg, p, button)`)].filter(
            (part) => part.closest('.project-table') === null).map((part) => part.getBoundingClientRect().right - window.innerWidth)), id);
    assert.ok(overflow <= 0, `${overflow} pixels stick out`);
}

test('what no run stored is said to be missing, with the command that makes it', () => here.visit(async function (page) {
    for (const [address, text] of [
        ['#history', /No run on nvidia-h200 stored the hashes of its machine code.*make bench/],
        ['#resources', /No run on no-gpu-x86_64 stored the hashes of its machine code.*make bench/],
        ['#noise', /no-gpu-x86_64 has no A\/A result.*make /],
        ['#bandwidth', /How much that cache holds was not stored/],
        ['#bandwidth?machine=partial-gpu', /^Stride copy, DRAM, by stride: not measured\.$/],
        ['#bandwidth?machine=partial-gpu', /^Kernels by size were not measured from DRAM\. What else was is on the page History/],
    ]) {
        await page.goto(here.sites.bare + address);
        await page.getByText(text).first().waitFor();
        await accessible(page);
        assert.equal(await page.locator('.project-page:not([hidden]) :is(.change, .boundary)').count(), 0);
    }
}));
