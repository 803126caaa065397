// Every page renders: served or as a file, in both themes, on a phone, accessibly.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { pathToFileURL } = require('url');
const { setup, accessible } = require('./check.js');
const { PHONE, PROJECT_PAGES, pages, settled } = require('./pages.js');

const here = setup({real: process.env.SITE, bare: process.env.BARE_SITE});

for (const [name, address, expected] of pages(process.env.SITE)) {
    test(`${name} renders without an error or a failed request`, () => here.visit(async function (page) {
        await page.goto(here.sites.real + address);
        await page.locator(expected).first().waitFor();
        await settled(page);
        if (PROJECT_PAGES.includes(name)) {
            await accessible(page);
        }
    }));

    test(`${name} renders from a file`, () => here.visit(async function (page) {
        await page.goto(pathToFileURL(process.env.SITE) + '/index.html' + address);
        await page.locator(expected).first().waitFor();
        await settled(page);
        assert.ok(await page.locator('#error').isHidden());
    }));
}

for (const name of PROJECT_PAGES) {
    for (const [theme, options] of [['dark', {colorScheme: 'dark'}], ['phone', PHONE]]) {
        test(`${name}, ${theme}: nothing sticks out, the theme is followed`, () => here.visit(async function (page) {
            await page.goto(`${here.sites.real}#${name}`);
            await page.locator(`#${name}-display table`).first().waitFor();
            await settled(page);
            await accessible(page);
            const [overflow, background] = await page.evaluate((id) => [
                Math.max(document.documentElement.scrollWidth - window.innerWidth,
                    ...[...document.querySelectorAll(`#${id} select, #${id} svg, #${id} p`)].map(
                        (one) => one.getBoundingClientRect().right - window.innerWidth)),
                getComputedStyle(document.getElementById(id)).backgroundColor,
            ], `${name}-display`);
            assert.ok(overflow <= 0, `${overflow} pixels stick out`);
            assert.equal(await page.evaluate(() => window.innerWidth), theme === 'phone' ? 375 : 1300);
            assert.equal(background, theme === 'dark' ? 'rgb(22, 24, 27)' : 'rgb(255, 255, 255)');
        }, options));
    }
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
