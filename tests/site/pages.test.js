// Every page in a browser: what is drawn, how it fits and follows choices, and what it refuses.
'use strict';

const assert = require('node:assert/strict');
const fs = require('fs');
const { test } = require('node:test');
const { pathToFileURL } = require('url');
const { known, here, visit, go, drawn, accessible, fits, seen } = require('./check.js');

const [first, second, , , , narrow] = known.commits;
const HOSTILE = encodeURIComponent(known.hostile);

/* What no text of a page holds, in any view. */
const UNREADABLE = /n\/a|NaN|undefined|None|null/;

/* Every page, and what is there once it is drawn; of each kind of commit page one is enough. */
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
    test(`${address} renders, served and as a file, on any width, in both themes, accessibly`, visit(async function (page) {
        await page.goto(`${pathToFileURL(process.env.SITE)}/${address}`);
        await page.locator(expected).first().waitFor();
        await page.goto(here.site + address);
        await page.locator(expected).first().waitFor();
        for (const [width, colorScheme] of [[1920, 'light'], [1280, 'light'], [390, 'dark']]) {
            const turn = Number(await page.evaluate(() => document.documentElement.dataset.drawn || 0));
            await page.emulateMedia({colorScheme});
            await page.setViewportSize({width, height: 900});
            await drawn(page, turn);
            await fits(page);
            await accessible(page);
            const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
            assert.equal(paper, colorScheme === 'dark' ? 'rgb(22, 24, 27)' : 'rgb(255, 255, 255)');
            assert.doesNotMatch(await page.locator('main').innerText(), UNREADABLE);
        }
    }));
}

/* Pages of charts whose texts and marks are compared with golden ones. */
const [TIME, TURNED, COPIES, LOADED, SPILLED] = ['time_kernel.Blur.time_back_to_back', 'time_kernel.Matrices.time_back_to_back',
    'track_control.Blur.track_copy_ratio', 'track_counted.Blur.track_sectors_loaded', 'track_compiled.Compiled.track_spill_bytes'];
const ALL = encodeURIComponent('all, a line each');
const CHARTS = [
    'bandwidth.html', `bandwidth.html#machine=${HOSTILE}&commit=${first.slice(0, 8)}&p-dtype=float64`, 'transactions.html',
    `transactions.html#commit=${narrow.slice(0, 8)}&metric=sectors%20loaded`,
    `history.html#benchmark=${TIME}`,
    `history.html#benchmark=${TIME}&unit=${encodeURIComponent('µs, lower is better')}&axis=from%200&p-dtype=float64&p-w=256`,
    `history.html#benchmark=${TIME}&p-w=${ALL}&unit=%25%20of%20theoretical%20peak`,
    `history.html#machine=every%20machine&benchmark=${LOADED}`,
    `history.html#benchmark=${COPIES}&axis=logarithmic`,
    `history.html#machine=nvidia-h200&benchmark=${TURNED}&p-kernel=flip`,
    `history.html#machine=no-gpu-x86_64&benchmark=${SPILLED}&p-arch=sm_80&p-kernel=${ALL}&axis=logarithmic`,
];
test('charts have their golden texts', visit(async function (page) {
    const found = {};
    for (const address of CHARTS) {
        await go(page, address);
        found[decodeURIComponent(address)] = await seen(page);
        assert.doesNotMatch(found[decodeURIComponent(address)], UNREADABLE, address);
    }
    fs.writeFileSync(process.env.CHARTS, JSON.stringify(found));
}));

test('a mark of a chart says at the pointer what it is', visit(async function (page) {
    await go(page, 'bandwidth.html');
    const bar = page.locator('.bar rect').first();
    await bar.scrollIntoViewIfNeeded();
    const {x, y, width, height} = await bar.boundingBox();
    await page.mouse.move(x + width - 1, y + height / 2);
    const tip = (await page.locator('[aria-label=tip] text').allTextContents()).join(' ').replaceAll('\u200b', '');
    assert.match(tip, /^flip, .*: 0\.33 GB\/s, 32\.8 % of peak/);
}));

for (const name of ['commit', 'compare', 'bandwidth', 'history', 'transactions']) {
    test(`${name}: every choice goes into the address, keeps the focus, and survives a reload`, visit(async (page) => {
        await go(page, `${name}.html`);
        const keys = await page.locator('main select').evaluateAll((found) => found.map((one) => one.name));
        assert.ok(keys.length > 0);
        const others = ['machine', ...name === 'history' ? ['benchmark'] : []]; // bring other choices with them
        for (const key of keys.filter((one) => !others.includes(one))) {
            const select = page.locator(`select[name="${key}"]`);
            const now = await select.inputValue();
            const options = await select.locator('option').evaluateAll((found) => found.map((one) => one.value));
            const other = options.find((one) => one !== now);
            if (other !== undefined) {
                await select.focus();
                await select.selectOption(other);
                await page.waitForFunction(([id, value]) => document.getElementById(id)?.value === value &&
                    document.activeElement.id === id, [`choice-${key}`, other]);
            }
        }
        const address = page.url().slice(here.site.length);
        const kept = new URLSearchParams(new URL(page.url()).hash.slice(1));
        keys.forEach((key) => assert.ok(kept.has(key), `${key} is not in ${address}`));
        const before = await page.locator('main').innerText();
        await go(page, address);
        assert.equal(await page.locator('main').innerText(), before);
        await go(page, `${address}&machine=nowhere`.replace(/machine=[^&]*&/, ''));
        await page.getByText(/^No machine nowhere here; shown is (every machine|nvidia-h200)\.$/).waitFor();
    }));
}

/* The cells of a heat map as [text, class, title], on a commit's page and on Compare. */
const heat = (page) => page.locator('.heat a').evaluateAll((all) => all.map((one) => [one.textContent, one.className, one.title]));
test('a heat map names and colours each change, and leads to History', visit(async function (page) {
    const query = `machine=nvidia-h200&base=${first.slice(0, 8)}&head=${second.slice(0, 8)}`;
    for (const address of [`commit/${second}.html`, `compare.html#numbers=timed&${query}`]) {
        await go(page, address);
        const cells = await heat(page);
        assert.deepEqual(cells.find(([, , title]) => title.startsWith('64, float32')),
            ['▲ +100', 'heat-worse-4', '64, float32, -Xptxas -O3: 40 µs → 80 µs, slower'], address);
        await page.locator('.heat a').first().click();
        await page.waitForURL(/history\.html#machine=.*&benchmark=.*&p-w=/);
        await page.locator('h2').first().waitFor();
        assert.equal(await page.locator('.notice', {hasText: 'here; shown is'}).count(), 0);
    }
    await go(page, `compare.html#numbers=counted&machine=no-gpu-x86_64&base=${second.slice(0, 8)}&head=${known.commits[6].slice(0, 8)}`);
    assert.deepEqual((await heat(page)).filter(([, name]) => name !== 'heat-same').map(([text, name]) => `${text} ${name}`).filter(
        (text, at, all) => all.indexOf(text) === at), ['▽ −50.0 heat-better-4']);
    assert.match(await page.locator('main').innerText(), /kernelwatch compare [0-9a-f]{8} [0-9a-f]{8} --machine no-gpu-x86_64/);
}));

test('Compare shows the machine and commits that a link names', visit(async function (page) {
    await go(page, `commit/${second}.html`);
    await page.getByRole('link', {name: 'Both commits compared here'}).last().click();
    await page.waitForURL(/compare\.html#numbers=counted&machine=no-gpu-x86_64&/);
    await page.locator('.heat a').first().waitFor();
    assert.equal(await page.locator('.notice', {hasText: 'here; shown is'}).count(), 0);
    assert.equal(await page.locator('select[name=machine]').inputValue(), 'no-gpu-x86_64');
    await page.evaluate(() => loadIndex().then((index) => {
        index.machines['no-gpu-x86_64'].commits.length = 1;
        window.location.hash = 'machine=no-gpu-x86_64&numbers=counted';
    }));
    await page.getByText('no GPU has not measured two commits yet').waitFor();
}));

test('times by fetch granularity have a curve for each limit, beside the sectors needed', visit(async function (page) {
    await go(page, 'bandwidth.html');
    const shown = await page.evaluate(function () {
        const axes = {s: ['1', '2'], dtype: ['t']};
        const display = document.getElementById('content').appendChild(document.createElement('div'));
        const fetching = [['k', 128], ['k', 32], ['k', 64], ['alone', 32]].map(([kernel, fetched]) => ({
            benchmark: {fetched, kernel, along: 's', axes, chosen: {dtype: 't'}},
            found: axes.s.map((s) => ({params: {s, dtype: 't'}, value: 1e-6 * s * fetched})),
        }));
        const counted = {kind: 'counted', kernel: 'k', name: 'K.track_load_sectors', id: 9, axes};
        drawFetchFigures(display, {benchmarks: {counted}}, {}, fetching, {9: [4, 8]});
        return [
            [...display.querySelectorAll('svg.plot')].map((plot) => plot.querySelectorAll('.line path').length),
            [...display.querySelectorAll('tr')].map((row) => [...row.cells].map((cell) => cell.textContent)),
        ];
    });
    assert.deepEqual(shown, [[3, 1, 1], [
        ['s', 'µs, 32 bytes', 'µs, 64 bytes', 'µs, 128 bytes', 'sectors needed'],
        ['1', '32.0', '64.0', '128.0', '4.00'], ['2', '64.0', '128.0', '256.0', '8.00'],
        ['s', 'µs, 32 bytes', 'sectors needed'], ['1', '32.0', '–'], ['2', '64.0', '–'],
    ]]);
}));

test('a page loads few files', visit(async function (page) {
    for (const address of ['bandwidth.html', 'history.html', 'transactions.html', 'compare.html', `commit/${first}.html`, `commit/${second}.html`]) {
        let count = 0;
        page.on('request', () => { count += 1; });
        await go(page, address);
        page.removeAllListeners('request');
        assert.ok(count <= 10, `${address}: ${count}`);
    }
}));

test('on a phone, all figures but the first are folded, and drawn when opened', visit(async function (page) {
    await page.setViewportSize({width: 390, height: 800});
    await go(page, 'bandwidth.html');
    const plots = await page.locator('svg.plot').count();
    await page.locator('details.folded summary').first().click();
    await page.locator('details.folded svg.plot').first().waitFor();
    assert.ok(await page.locator('svg.plot').count() > plots);
    await fits(page);
}));

/* What is chosen on Commits -> how many of its rows are shown, and what each says. */
const FILTERS = {
    '': [7, /./], 'machine=nvidia-h200': [6, /H200/], 'show=worse&machine=nvidia-h200': [4, /slower|broken|mixed/], 'kernel=sharpen': [2, /[Ss]harpen/],
    'show=acknowledged': [1, /it keeps a row/], 'kernel=turn&show=worse': [1, /turn is slower in 1, faster in 1 of 4 times/],
};
test('commits are filtered', visit(async function (page) {
    for (const [query, [count, text]] of Object.entries(FILTERS)) {
        await go(page, `commit.html#${query}`);
        const rows = await page.locator('#rows tr:not([hidden])').allTextContents();
        assert.equal(rows.length, count, query);
        rows.forEach((row) => assert.match(row, text));
        assert.match(await page.locator('caption').first().textContent(), new RegExp(`^${count} commit`));
    }
}));

test("a commit's first digits lead to its page, others are told", visit(async function (page) {
    await page.goto(`${here.site}commit.html#${second.slice(0, 6)}`);
    await page.waitForURL(`${here.site}commit/${second}.html`);
    await go(page, 'commit.html#0123456789');
    await page.getByText('No measured commit begins so').waitFor();
}));

test('overview: a sparkline leads to its History, a mark to its commit, by keyboard', visit(async function (page) {
    for (const [link, address] of [['a', /history\.html#/], ['a.mark', `**/commit/${second}.html`]]) {
        await go(page, '');
        await page.locator('tr', {hasText: known.kernel}).first().locator('td').first().locator(link).first().focus();
        await page.keyboard.press('Enter');
        await page.waitForURL(address);
    }
}));

test('overview: a number does not stick out of its column', visit(async function (page) {
    await page.setViewportSize({width: 910, height: 800});
    await go(page, '');
    await page.locator('.overview td strong').evaluateAll((all) => all.forEach((amount) => { amount.textContent = '99,798,500 sectors'; }));
    await fits(page);
}));

test('every link of a page to another is there', visit(async (page) => {
    const found = new Set();
    for (const address of ['', 'commit.html', `commit/${second}.html`]) {
        await go(page, address);
        (await page.locator('a').evaluateAll((all) => all.map((one) => new URL(one.href.baseVal ?? one.href, location.href).href.replace(/#.*/, ''))))
            .forEach((link) => found.add(link));
    }
    assert.ok(found.size >= 12);
    for (const link of found) {
        assert.equal((await page.request.head(link)).status(), 200, link);
    }
}));

test('charts follow the width of the window', visit(async function (page) {
    await go(page, 'bandwidth.html');
    const width = () => page.locator('main svg.plot').first().getAttribute('width').then(Number);
    const before = await width();
    await page.setViewportSize({width: 500, height: 700});
    await drawn(page, 1);
    assert.ok(await width() < before);
}));

test('the policy stops other hosts and scripts in the page', visit(async function (page) {
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

test('hostile names stay text', visit(async function (page) {
    for (const [address, least] of [
        ['index.html', 1], [`commit/${second}.html`, 2], ['commit.html', 1],
        [`bandwidth.html#machine=${HOSTILE}`, 2], [`history.html#machine=${HOSTILE}&benchmark=${SPILLED}`, 2],
        [`bandwidth.html#machine=${encodeURIComponent('<img src=x onerror="window.attacked=1">')}&p-kernel=${HOSTILE}`, 1],
    ]) {
        await go(page, address);
        assert.equal(await page.locator('main img').count(), 0, address);
        assert.equal(await page.evaluate(() => window.attacked), undefined, address);
        const shown = await page.locator('body').textContent();
        assert.ok(shown.split(known.hostile.slice(2, 12)).length > least, `${address}: ${shown.slice(0, 2000)}`);
    }
}));

test('without a script or a piece of its data a page says so', visit(async function (page) {
    await page.route('**/data/commits/**', (route) => route.abort());
    await page.goto(`${here.site}bandwidth.html`);
    await page.getByText('A part of this page could not be loaded').waitFor();
    await page.route('**/scripts/history.js*', (route) => route.abort());
    await page.goto(`${here.site}history.html`);
    await page.getByText('If this text stays, one of them could not be loaded.').waitFor();
    return false;
}));

/* What the pages share, with facts made up: what is asked, and the answer. */
const SHARED = {
    'the newest commit with half as many values as any': [() => fullest(
        [30, 29, 15, 14].map((each) => ({has: [4], values: [each]})), [{id: 4}]).values, [15]],
    'numbers in titles have their names': [() => titled('Blur', 'by w', {h: '64', size: '2x3', dtype: 'int8'}), 'Blur, by w, h 64, 2x3, int8'],
    'places by size': [() => placesOf(['10x10', '9', '2x3'].map((n) => ({params: {n}, value: 1})), 'n'), ['2x3', '9', '10x10']],
    'what was picked, or else what tells most': [() => fixedAt(
        {axes: {w: [], h: []}, chosen: {w: '1', h: '2'}}, ['w', 'h', 'dtype'], {w: '3', h: '4'}, [{params: {w: '3', h: '2'}, value: 1}]),
    {w: '3', h: '2'}],
};
test('what the pages share', visit(async function (page) {
    await go(page, 'bandwidth.html');
    for (const [what, [ask, answer]] of Object.entries(SHARED)) {
        assert.deepEqual(await page.evaluate(`(${ask})()`), answer, what);
    }
}));
