// Every page renders: served or as a file, in both themes, on narrow and wide screens, accessibly.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { pathToFileURL } = require('url');
const { known, here, visit, go, drawn, accessible } = require('./check.js');
const { PROJECT_PAGES } = require('./pages.js');

/* How each page is looked at, one after the other: widths, themes. */
const LOOKS = [[1920, 'light'], [390, 'dark']];

for (const [name, [address, expected]] of Object.entries(PROJECT_PAGES)) {
    test(`${name} renders, served and as a file, on any width, in both themes, accessibly`, () => visit(async function (page) {
        await page.goto(`${pathToFileURL(process.env.SITE)}/${address}`);
        await page.locator(expected).first().waitFor();
        await page.goto(here.site + address);
        await page.locator(expected).first().waitFor();
        for (const [width, colorScheme] of LOOKS) {
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
            (part) => part.closest('.project-table, .listing') === null).map((part) => part.getBoundingClientRect().right - window.innerWidth)));
    assert.ok(overflow <= 0, `${overflow} pixels stick out`);
}

test('what no run stored is said to be missing, with the command that makes it', () => visit(async function (page) {
    for (const [address, text] of [
        ['bandwidth.html#machine=partial-gpu', /How much that cache holds was not stored/],
        ['bandwidth.html#machine=partial-gpu', /^Not measured at this commit: .*; Stride copy, DRAM; .*What else was is on the page History/],
    ]) {
        await go(page, here.site + address);
        await page.getByText(text).first().waitFor();
        assert.equal(await page.locator(':is(.change, .boundary)').count(), 0);
    }
}));

for (const name of ['commits', 'bandwidth', 'history', 'transactions']) {
    test(`${name}: every choice goes into the address, keeps the focus, and survives a reload`, () => visit(async (page) => {
        await go(page, here.site + PROJECT_PAGES[name][0]);
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

test('charts follow the width of the window', () => visit(async function (page) {
    await go(page, `${here.site}bandwidth.html`);
    const width = () => page.locator('main svg.plot').first().getAttribute('width').then(Number);
    const before = await width();
    await page.setViewportSize({width: 500, height: 700});
    await drawn(page, 1);
    assert.ok(await width() < before);
}));

test("a commit's first digits lead to its page", () => visit(async function (page) {
    await page.goto(`${here.site}commit.html#740a78`);
    await page.waitForURL(`${here.site}commit/740a7872b13f3fc74408f59cea51df6a85d996d9.html`);
}));

test('the policy stops other hosts and scripts in the page', () => visit(async function (page) {
    await page.goto(`${here.site}bandwidth.html`);
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

test('hostile names stay text', () => visit(async function (page) {
    const name = encodeURIComponent(known.hostile);
    for (const [address, least] of [
        ['index.html', 0], [`commit/${known.hostile_commit}.html`, 2], ['commit.html', 1],
        [`bandwidth.html#machine=${name}`, 2], [`history.html#machine=${name}`, 2],
        [`history.html#machine=${name}&benchmark=track_compiled.Compiled.track_spill_bytes`, 2],
        [`bandwidth.html#machine=${encodeURIComponent('<img src=x onerror="window.attacked=1">')}&p-kernel=${name}`, 1],
    ]) {
        await go(page, here.site + address);
        assert.equal(await page.locator('main img').count(), 0, address);
        assert.equal(await page.evaluate(() => window.attacked), undefined, address);
        const shown = await page.locator('body').textContent();
        assert.ok(shown.split(known.hostile.slice(0, 12)).length > least, `${address}: ${shown.slice(0, 2000)}`);
    }
}));

test('without a script or a piece of its data a page says so', () => visit(async function (page) {
    await page.route('**/data/values/**', (route) => route.abort());
    await page.goto(`${here.site}bandwidth.html`);
    await page.getByText('A part of this page could not be loaded').waitFor();
    await page.route('**/static/view.js', (route) => route.abort());
    await page.goto(`${here.site}history.html`);
    await page.getByText('If this text stays, one of them could not be loaded.').waitFor();
    return false;
}));
