// Getting about: tabs, the back button, addresses that keep choices, and the width of the window.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { known, setup } = require('./check.js');
const { PROJECT_PAGES, settled } = require('./pages.js');

const here = setup({real: process.env.SITE});

test('tabs switch, the back button too, and one page is shown at a time', () => here.visit(async function (page) {
    await page.goto(here.sites.real);
    const displays = {'': 'summarygrid', summarylist: 'summarylist', regressions: 'regressions'};
    PROJECT_PAGES.forEach((name) => displays[name] = name);
    async function only(name) {
        // By their style: asv's list has no height of its own, so that Playwright takes it for hidden.
        const shown = () => page.evaluate((names) => names.filter(
            (one) => getComputedStyle(document.getElementById(`${one}-display`)).display !== 'none'), Object.values(displays));
        await page.waitForFunction(
            (one) => getComputedStyle(document.getElementById(one)).display !== 'none', `${displays[name]}-display`);
        assert.deepEqual(await shown(), [displays[name]]);
        assert.equal(await page.locator('#nav li.active').getAttribute('id'), `nav-li-${name}`);
    }
    const tabs = PROJECT_PAGES.filter((name) => name !== 'commit'); // only links lead there
    for (const name of [...tabs, 'summarylist', 'transactions', 'bandwidth', 'transactions', '']) {
        await page.locator(`[id="nav-li-${name}"] a`).click();
        await only(name);
    }
    await page.goBack();
    await only('transactions');
}));

test('charts follow the width of the window, and a hidden graph does not', () => here.visit(async function (page) {
    await page.goto(`${here.sites.real}#${known.benchmark}`);
    await page.locator('#main-graph canvas').first().waitFor();
    await page.goto(`${here.sites.real}#bandwidth`);
    const svg = page.locator('#bandwidth-display svg').first();
    const before = await svg.getAttribute('width');
    await page.setViewportSize({width: 500, height: 700});
    await page.waitForFunction((width) => Number(
        (document.querySelector('#bandwidth-display svg') || {getAttribute: () => width}).getAttribute('width')) < width, before);
    await page.goto(`${here.sites.real}#regressions`);
    await page.setViewportSize({width: 1000, height: 700});
    await settled(page);
}));

test('every entry of the navigation is seen, and asv\'s pages begin below it', async function () {
    for (const width of [1920, 1440, 980, 390]) {
        await here.visit(async function (page) {
            for (const [address, below] of [
                [`#${known.benchmark}`, '#graphdisplay-navigation'],
                ['#/', '#summarygrid-display'], ['#regressions', '#regressions-display'],
            ]) {
                await page.goto(here.sites.real + address);
                await page.waitForFunction((one) => document.querySelector(one).getBoundingClientRect().width > 0, below);
                const [high, start, right, shown] = await page.evaluate((one) => [
                    document.getElementById('nav').offsetHeight, document.querySelector(one).getBoundingClientRect().top,
                    Math.max(...[...document.querySelectorAll('#nav li')].map((li) => li.getBoundingClientRect().right)),
                    document.documentElement.scrollWidth], below);
                assert.ok(start >= high - 1 && start <= high + 1, `${width} ${address}: ${start} below ${high}`);
                assert.ok(right <= width && shown <= width, `${width} ${address}: ${right} and ${shown}`);
                assert.ok(width < 1440 || high <= 60, `${width} ${address}: ${high}`);
            }
            return false; // asv also asks for graphs of machines that have none
        }, {viewport: {width, height: 700}});
    }
});

for (const name of PROJECT_PAGES.filter((one) => one !== 'commit')) {
    test(`${name}: every choice goes into the address, keeps the focus, and survives a reload`, () => here.visit(async (page) => {
        await page.goto(`${here.sites.real}#${name}`);
        const display = page.locator(`#${name}-display`);
        await display.locator('table').first().waitFor();
        const keys = await display.locator('select').evaluateAll((found) => found.map((one) => one.name));
        assert.ok(keys.length > 0);
        const others = {history: ['machine', 'benchmark'], overview: []}[name] || ['machine']; // bring other choices with them
        for (const key of keys.filter((one) => !others.includes(one))) {
            const select = display.locator(`select[name="${key}"]`);
            const now = await select.inputValue();
            const options = await select.locator('option').evaluateAll((found) => found.map((one) => one.value));
            const value = options.reverse().find((option) => option !== now);
            if (value !== undefined) {
                await select.selectOption(value);
                const wanted = `${encodeURIComponent(key)}=${encodeURIComponent(value)}`;
                await page.waitForFunction((text) => window.location.hash.includes(text), wanted);
                await page.waitForFunction((id) => document.activeElement.id === id, `${name}-${key}`);
            }
        }
        const address = page.url();
        keys.forEach((key) => assert.ok(address.includes(`${encodeURIComponent(key)}=`), `${key} is not in ${address}`));
        const before = await display.innerText();
        await settled(page); // a reload breaks off what is still on its way, such as the icon
        await page.reload();
        await display.locator('table').first().waitFor();
        await settled(page);
        assert.equal(page.url(), address);
        assert.equal(await display.innerText(), before);
        await page.goto(`${here.sites.real}#${name}?machine=nowhere`);
        await page.getByText(/^No .* of machine nowhere here/).waitFor();
    }));
}

test('asv\'s graphs offer those axes alone that they can draw', () => here.visit(async function (page) {
    for (const [benchmark, axes] of [[known.benchmark, ['commit']], [known.strided, ['commit', 'stride', 'size']]]) {
        await page.goto(`${here.sites.real}#${benchmark}`);
        const panel = page.locator('#graphdisplay-navigation .panel', {hasText: 'x-axis'});
        await panel.locator('a').first().waitFor();
        assert.deepEqual(await panel.locator('a').allTextContents(), axes);
        await settled(page);
    }
    return false; // asv also asks for graphs of machines that have none
}));
