// Every page renders: served or as a file, in both themes, on narrow and wide screens, accessibly.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { pathToFileURL } = require('url');
const { known, setup, go, drawn, accessible } = require('./check.js');
const { PROJECT_PAGES, pages } = require('./pages.js');

const here = setup({real: process.env.SITE, bare: process.env.BARE_SITE, hostile: process.env.HOSTILE_SITE});

/* How each page is looked at, one after the other: widths, themes. */
const LOOKS = [[1920, 'light'], [390, 'dark']];

for (const [name, address, expected] of pages(process.env.SITE)) {
    const own = name in PROJECT_PAGES;
    test(`${name} renders, served and as a file, on any width, in both themes, accessibly`, () => here.visit(async function (page) {
        await page.goto(`${pathToFileURL(process.env.SITE)}/${address}`);
        await page.locator(expected).first().waitFor();
        await page.goto(here.sites.real + address);
        await page.locator(expected).first().waitFor();
        await page.waitForLoadState('networkidle'); // asv's pages load more
        for (const [width, colorScheme] of own ? LOOKS : []) {
            const turn = Number(await page.evaluate(() => document.documentElement.dataset.drawn || 0));
            const narrower = page.viewportSize().width !== width;
            await page.emulateMedia({colorScheme});
            await page.setViewportSize({width, height: 900});
            await drawn(page, narrower ? turn : 0);
            await fits(page);
            await accessible(page);
            assert.equal(
                await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
                colorScheme === 'dark' ? 'rgb(22, 24, 27)' : 'rgb(255, 255, 255)');
        }
    }));
}

/* Nothing of a page sticks out. */
async function fits(page) {
    const overflow = await page.evaluate(() => Math.max(
        document.documentElement.scrollWidth - window.innerWidth,
        ...[...document.querySelectorAll('main :is(select, svg, p, button)')].filter(
            (part) => part.closest('.project-table, .heat') === null).map((part) => part.getBoundingClientRect().right - window.innerWidth)));
    assert.ok(overflow <= 0, `${overflow} pixels stick out`);
}

test('what no run stored is said to be missing, with the command that makes it', () => here.visit(async function (page) {
    for (const [address, text] of [
        ['history.html', /No run on nvidia-h200 stored the hashes of its machine code.*kernelwatch run/],
        ['details.html', /no-gpu-x86_64 has no A\/A result.*kernelwatch selftest/],
        ['bandwidth.html', /How much that cache holds was not stored/],
        ['bandwidth.html#machine=partial-gpu', /^Not measured at this commit: .*; Stride copy, DRAM; .*What else was is on the page History/],
    ]) {
        await go(page, here.sites.bare + address);
        await page.getByText(text).first().waitFor();
        assert.equal(await page.locator(':is(.change, .boundary)').count(), 0);
    }
}));

for (const name of ['regressed', 'bandwidth', 'history', 'transactions']) {
    test(`${name}: every choice goes into the address, keeps the focus, and survives a reload`, () => here.visit(async (page) => {
        await go(page, here.sites.real + PROJECT_PAGES[name][0]);
        const keys = await page.locator('main select').evaluateAll((found) => found.map((one) => one.name));
        assert.ok(keys.length > 0);
        const others = ['machine', ...name === 'history' ? ['benchmark'] : []]; // bring other choices with them
        for (const key of keys.filter((one) => !others.includes(one))) {
            const select = page.locator(`select[name="${key}"]`);
            const now = await select.inputValue();
            const options = await select.locator('option').evaluateAll((found) => found.map((one) => one.value));
            const value = options.reverse().find((option) => option !== now);
            if (value !== undefined) {
                await select.focus();
                await select.selectOption(value);
                await page.waitForFunction(([one, wanted]) => new URLSearchParams(location.hash.slice(1)).get(one) === wanted, [key, value]);
                await page.waitForFunction((id) => document.activeElement.id === id, `choice-${key}`);
            }
        }
        const address = page.url();
        const kept = new URLSearchParams(new URL(address).hash.slice(1));
        keys.forEach((key) => assert.ok(kept.has(key), `${key} is not in ${address}`));
        const shown = () => page.locator('main').innerText();
        const before = await shown();
        await go(page, address);
        assert.equal(await shown(), before);
        await go(page, `${address}&machine=nowhere`.replace(/machine=[^&]*&/, ''));
        await page.getByText(/^No machine nowhere here/).waitFor();
        await page.goBack();
    }));
}

test('charts follow the width of the window', () => here.visit(async function (page) {
    await go(page, `${here.sites.real}bandwidth.html`);
    const width = () => page.locator('main svg.plot').first().getAttribute('width').then(Number);
    const before = await width();
    await page.setViewportSize({width: 500, height: 700});
    await drawn(page, 1);
    assert.ok(await width() < before);
}));

test('addresses of the feed and of commits lead to their pages', () => here.visit(async function (page) {
    for (const [old, now] of [
        [`index.html#${known.benchmark}?arch=a`, `asv.html#${known.benchmark}?arch=a`],
        ['commit.html#740a78', 'commit/740a7872b13f3fc74408f59cea51df6a85d996d9.html'],
    ]) {
        await page.goto('about:blank');
        await page.goto(here.sites.real + old);
        await page.waitForURL(here.sites.real + now);
    }
    return false; // asv also asks for graphs of machines that have none
}));

test('the policy stops other hosts and scripts in the page', () => here.visit(async function (page) {
    await page.goto(`${here.sites.real}bandwidth.html`);
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
    for (const [address, least] of [
        ['index.html', 2], [`commit/${known.hostile_commit}.html`, 2], ['regressed.html', 2], ['commit.html', 2],
        ['bandwidth.html', 2], ['history.html', 2], ['details.html', 3], ['transactions.html', 0],
        [`history.html#machine=${name}&benchmark=track_compiled.Compiled.track_registers`, 2],
        [`bandwidth.html#machine=${encodeURIComponent('<img src=x onerror="window.attacked=1">')}&p-kernel=${name}`, 2],
        ['asv.html#/', 0], ['asv.html#summarylist', 0], ['asv.html#regressions', 0], [`asv.html#${known.benchmark}`, 0],
    ]) {
        await go(page, here.sites.hostile + address);
        if (address.startsWith('asv')) {
            await page.waitForLoadState('networkidle');
        } else {
            assert.equal(await page.locator('main img').count(), 0, address);
        }
        assert.equal(await page.evaluate(() => window.attacked), undefined, address);
        const shown = await page.locator('body').textContent();
        assert.ok(shown.split(known.hostile.slice(0, 12)).length > least, `${address}: ${shown.slice(0, 2000)}`);
    }
    return false; // asv's own pages make images of them, which the policy lets load nothing
}));

test('without a script or a piece of its data a page says so', () => here.visit(async function (page) {
    await page.route('**/data/values/**', (route) => route.abort());
    await page.goto(`${here.sites.real}bandwidth.html`);
    await page.getByText('A part of this page could not be loaded').waitFor();
    await page.route('**/project/view.js', (route) => route.abort());
    await page.goto(`${here.sites.real}history.html`);
    await page.getByText('If this text stays, one of them could not be loaded.').waitFor();
    return false;
}));
