// Every page in a browser, in one process: what is drawn, how it fits, what it loads, and what it refuses.
'use strict';

const assert = require('node:assert/strict');
const { pathToFileURL } = require('url');
const { facts, server, UNREADABLE, testPages, openPage, waitUntilDrawn, assertAccessible, assertFits } = require('./check.js');
require('./charts.js');
require('./changes.js');

const [first, second] = facts.commits;
const HOSTILE = encodeURIComponent(facts.hostile);

/* Every page, and an element that is there once it is drawn; of each kind of commit page one is enough. */
const PAGES = {
    'index.html': '.overview table',
    'commit.html': 'tbody tr',
    [`commit.html#${second.slice(0, 8)}`]: '.heat a',
    'compare.html': '.heat a',
    'bandwidth.html': '.project-chart svg.plot',
    'history.html': '.project-chart svg.plot',
    'transactions.html': '.project-chart svg.plot',
};
for (const [address, expected] of Object.entries(PAGES)) {
    testPages(`${address} renders, served and as a file, on any width, in both themes, accessibly`, async function (page) {
        await page.goto(`${pathToFileURL(process.env.SITE)}/${address}`);
        await page.locator(expected).first().waitFor();
        await page.goto(server.address + address);
        await page.locator(expected).first().waitFor();
        for (const [width, colorScheme] of [[1920, 'light'], [1280, 'light'], [390, 'dark']]) {
            const turn = Number(await page.evaluate(() => document.documentElement.dataset.drawn || 0));
            await page.emulateMedia({colorScheme});
            await page.setViewportSize({width, height: 900});
            await waitUntilDrawn(page, turn);
            await assertFits(page);
            await assertAccessible(page);
            const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
            assert.equal(paper, colorScheme === 'dark' ? 'rgb(22, 24, 27)' : 'rgb(255, 255, 255)');
            assert.doesNotMatch(await page.locator('main').innerText(), UNREADABLE);
        }
    });
}

for (const name of ['commit', 'compare', 'bandwidth', 'history', 'transactions']) {
    testPages(`${name}: every choice goes into the address, keeps the focus, and survives a reload`, async (page) => {
        await openPage(page, `${name}.html`);
        const keys = await page.locator('main select').evaluateAll((selects) => selects.map((select) => select.name));
        assert.ok(keys.length > 0);
        const skippedKeys = ['machine', ...name === 'history' ? ['benchmark'] : []]; // bring other choices with them
        for (const key of keys.filter((choice) => !skippedKeys.includes(choice))) {
            const select = page.locator(`select[name="${key}"]`);
            const current = await select.inputValue();
            const values = await select.locator('option').evaluateAll((options) => options.map((option) => option.value));
            const next = values.find((value) => value !== current);
            if (next !== undefined) {
                await select.focus();
                await select.selectOption(next);
                await page.waitForFunction(([id, value]) => document.getElementById(id)?.value === value &&
                    document.activeElement.id === id, [`choice-${key}`, next]);
            }
        }
        const address = page.url().slice(server.address.length);
        const query = new URLSearchParams(new URL(page.url()).hash.slice(1));
        keys.forEach((key) => assert.ok(query.has(key), `${key} is not in ${address}`));
        const text = await page.locator('main').innerText();
        await openPage(page, address);
        assert.equal(await page.locator('main').innerText(), text);
        await openPage(page, `${address}&machine=nowhere`.replace(/machine=[^&]*&/, ''));
        await page.getByText(/^No machine nowhere here; shown is (every machine|nvidia-h200)\.$/).waitFor();
    });
}

testPages('a page loads few files', async function (page) {
    for (const address of ['bandwidth.html', 'history.html', 'transactions.html', 'compare.html', `commit/${first}.html`, `commit/${second}.html`]) {
        let count = 0;
        page.on('request', () => { count += 1; });
        await openPage(page, address);
        page.removeAllListeners('request');
        assert.ok(count <= 10, `${address}: ${count}`);
    }
});

testPages('every link of a page to another is there', async function (page) {
    const links = new Set();
    for (const address of ['', 'commit.html', `commit/${second}.html`]) {
        await openPage(page, address);
        (await page.locator('a').evaluateAll((anchors) => anchors.map(
            ({href}) => new URL(href.baseVal ?? href, location.href).href.replace(/#.*/, '')))).forEach((link) => links.add(link));
    }
    assert.ok(links.size >= 12);
    for (const link of links) {
        assert.equal((await page.request.head(link)).status(), 200, link);
    }
});

testPages('the policy stops other hosts and scripts in the page', async function (page) {
    await page.goto(`${server.address}bandwidth.html`);
    const [violations, ran] = await page.evaluate(async function () {
        const directives = [];
        document.addEventListener('securitypolicyviolation', (event) => directives.push(event.effectiveDirective));
        await fetch('https://example.org/').catch(() => null);
        const script = document.createElement('script');
        script.textContent = 'window.ran = true';
        document.body.append(script);
        await new Promise((resolve) => setTimeout(resolve, 100)); // the browser reports violations later
        return [directives, window.ran === true];
    });
    assert.deepEqual(violations.sort(), ['connect-src', 'script-src-elem']);
    assert.equal(ran, false);
    return false;
});

testPages('hostile names stay text', async function (page) {
    for (const [address, least] of [
        ['index.html', 1], [`commit/${second}.html`, 2], ['commit.html', 1],
        [`bandwidth.html#machine=${HOSTILE}`, 2], [`history.html#machine=${HOSTILE}&benchmark=track_compiled.Compiled.track_spill_bytes`, 2],
        [`bandwidth.html#machine=${encodeURIComponent('<img src=x onerror="window.attacked=1">')}&p-kernel=${HOSTILE}`, 1],
    ]) {
        await openPage(page, address);
        assert.equal(await page.locator('main img').count(), 0, address);
        assert.equal(await page.evaluate(() => window.attacked), undefined, address);
        const text = await page.locator('body').textContent();
        assert.ok(text.split(facts.hostile.slice(2, 12)).length > least, `${address}: ${text.slice(0, 2000)}`);
    }
});

testPages('without a script or a piece of its data a page says so', async function (page) {
    await page.route('**/data/commits/**', (route) => route.abort());
    await page.goto(`${server.address}bandwidth.html`);
    await page.getByText('A part of this page could not be loaded').waitFor();
    await page.route('**/scripts/history.js*', (route) => route.abort());
    await page.goto(`${server.address}history.html`);
    await page.getByText('If this text stays, a script could not be loaded.').waitFor();
    return false;
});
