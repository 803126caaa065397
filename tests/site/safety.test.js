// Nothing leaves, nothing foreign runs, and what is missing is told.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { known, setup } = require('./check.js');
const { PROJECT_PAGES, settled } = require('./pages.js');

const here = setup({real: process.env.SITE, hostile: process.env.HOSTILE_SITE});

test('the policy stops other hosts and scripts in the page', () => here.visit(async function (page) {
    await page.goto(`${here.sites.real}#bandwidth`);
    const [fetched, ran] = await page.evaluate(async function () {
        const violations = [];
        document.addEventListener('securitypolicyviolation', (event) => violations.push(event.effectiveDirective));
        await fetch('https://example.org/').catch(() => null);
        const script = document.createElement('script');
        script.textContent = 'window.ran = true';
        document.body.append(script);
        await new Promise((resolve) => setTimeout(resolve, 100)); // violations are told of later
        return [violations, window.ran === true];
    });
    assert.deepEqual([...fetched].sort(), ['connect-src', 'script-src-elem']);
    assert.equal(ran, false);
    return false;
}));

test('hostile names stay text', () => here.visit(async function (page) {
    const name = encodeURIComponent(known.hostile);
    for (const hash of [
        ...PROJECT_PAGES.map((one) => `#${one}?machine=${name}&arch=${name}&code=${name}&p-kernel=${name}`),
        `#bandwidth?machine=${encodeURIComponent('<img src=x onerror="window.attacked=1">')}`,
        `#resources?arch=${name}`, `#noise?benchmark=${name}`, '#history?benchmark=track_compiled.Compiled.track_registers',
        '#/', '#summarylist', '#regressions', `#${known.benchmark}`,
    ]) {
        await page.goto(here.sites.hostile + hash);
        await settled(page);
        assert.equal(await page.evaluate(() => window.attacked), undefined, hash);
        assert.equal(await page.locator('.project-page img').count(), 0, hash);
    }
    return false; // asv's own pages make images of them, which the policy lets load nothing
}));

for (const [page_, count] of [['bandwidth', 2], ['history', 2], ['resources', 2], ['noise', 3]]) {
    test(`hostile names are shown on ${page_}, as they are`, () => here.visit(async function (page) {
        await page.goto(`${here.sites.hostile}#${page_}`);
        await page.locator(`#${page_}-display table`).last().waitFor();
        assert.equal(await page.locator(`#${page_}-machine`).inputValue(), known.hostile);
        const shown = await page.locator(`#${page_}-display`).innerText();
        assert.ok(shown.split(known.hostile.slice(0, 12)).length > count, shown);
    }));
}

test('without one of its scripts the site says so', () => here.visit(async function (page) {
    await page.route('**/jquery.min.js', (route) => route.abort());
    await page.goto(here.sites.real);
    await page.waitForURL('**/error.html');
    return false;
}));

test('without a piece of its data a page says so', () => here.visit(async function (page) {
    await page.route('**/data/commits/**', (route) => route.abort());
    await page.goto(`${here.sites.real}#bandwidth`);
    await page.getByText('Error fetching content').waitFor();
    return false;
}));
