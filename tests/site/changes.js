// The pages of changes in a browser: Overview, Commits, a commit and Compare.
'use strict';

const assert = require('node:assert/strict');
const { facts, server, testPages, openPage, assertFits } = require('./check.js');

const [first, second] = facts.commits;

/* The cells of a heat map as [text, class, title]. */
const listCells = (page) => page.locator('.heat a').evaluateAll((links) => links.map((link) => [link.textContent, link.className, link.title]));
const countNotices = (page) => page.locator('.notice', {hasText: 'here; shown is'}).count();

testPages('a heat map names and colours each change, and leads to History', async function (page) {
    const query = `machine=nvidia-h200&base=${first.slice(0, 8)}&head=${second.slice(0, 8)}`;
    for (const address of [`commit/${second}.html`, `compare.html#numbers=timed&${query}`]) {
        await openPage(page, address);
        const cells = await listCells(page);
        assert.deepEqual(cells.find(([, , title]) => title.startsWith('64, float32')),
            ['▲ +100', 'heat-worse-4', '64, float32, -Xptxas -O3: 40 µs → 80 µs, slower'], address);
        await page.locator('.heat a').first().click();
        await page.waitForURL(/history\.html#machine=.*&benchmark=.*&p-w=/);
        await page.locator('h2').first().waitFor();
        assert.equal(await countNotices(page), 0);
    }
    await openPage(page, `compare.html#numbers=counted&machine=no-gpu-x86_64&base=${second.slice(0, 8)}&head=${facts.commits[6].slice(0, 8)}`);
    assert.deepEqual([...new Set((await listCells(page)).filter(([, name]) => name !== 'heat-same').map(([text, name]) => `${text} ${name}`))],
        ['▽ −50.0 heat-better-4']);
    assert.match(await page.locator('.heat-maps summary').first().textContent(), /^blur ▽ 8 fell of 8$/);
    const rows = await page.locator('.project-table tbody tr').evaluateAll((all) => all.map((row) => row.innerText.split('\t')));
    assert.equal(new Set(rows.map(([kernel, , , , , configuration, number]) => [kernel, configuration, number].join())).size, 8);
    assert.match(await page.locator('main').innerText(), /kernelwatch compare [0-9a-f]{8} [0-9a-f]{8} --machine no-gpu-x86_64/);
});

testPages('a heat map has no empty head', async function (page) {
    await openPage(page, 'compare.html');
    const heads = await page.evaluate(function () {
        const display = document.createElement('div');
        const benchmark = {name: 'b', title: 't', type: 'time', axes: {s: ['1'], dtype: ['d']}};
        const cell = {benchmark, params: {s: '1', dtype: 'd'}, base: 1, head: 2, verdict: 'slower'};
        drawHeatMaps(display, {signs: {slower: '▲'}}, 'm', [{kernel: 'k', cells: [cell]}]);
        return [...display.querySelectorAll('th')].map((head) => head.textContent);
    });
    assert.deepEqual(heads, ['d']);
});

testPages('the change of a cell is rounded', async function (page) {
    await openPage(page, 'compare.html');
    assert.deepEqual(await page.evaluate(() => [[353.9, 385.7], [1000, 1000.4], [100, 96.04], [2, 2.4567], [1, 5.126], [0, 28], [3, 3]].map(
        ([base, head]) => formatChange({base, head}))), ['+9.0', '+0.0', '−4.0', '+22.8', '+413', '→28', '0']);
});

testPages('Compare shows the machine and commits that a link names', async function (page) {
    await openPage(page, `commit/${second}.html`);
    await page.getByRole('link', {name: 'Both commits compared here'}).last().click();
    await page.waitForURL(/compare\.html#numbers=counted&machine=no-gpu-x86_64&/);
    await page.locator('.heat a').first().waitFor();
    assert.equal(await countNotices(page), 0);
    assert.equal(await page.locator('select[name=machine]').inputValue(), 'no-gpu-x86_64');
    await page.evaluate(() => loadIndex().then((index) => {
        index.machines['no-gpu-x86_64'].commits.length = 1;
        window.location.hash = 'machine=no-gpu-x86_64&numbers=counted';
    }));
    await page.getByText('no GPU has not measured two commits yet').waitFor();
});

/* Choices on Commits -> the number of its rows, and a text of each. */
const FILTERS = {
    '': [7, /./], 'machine=nvidia-h200': [6, /H200/], 'show=worse&machine=nvidia-h200': [4, /slower|broken|mixed/], 'kernel=sharpen': [2, /[Ss]harpen/],
    'show=acknowledged': [1, /it keeps a row/], 'kernel=turn&show=worse': [1, /turn is slower in 1, faster in 1 of 4 times/],
};
testPages('commits are filtered', async function (page) {
    for (const [query, [count, text]] of Object.entries(FILTERS)) {
        await openPage(page, `commit.html#${query}`);
        const rows = await page.locator('#rows tr:not([hidden])').allTextContents();
        assert.equal(rows.length, count, query);
        rows.forEach((row) => assert.match(row, text));
        assert.match(await page.locator('caption').first().textContent(), new RegExp(`^${count} commit`));
    }
});

testPages("a commit's first digits lead to its page, others to a notice", async function (page) {
    await page.goto(`${server.address}commit.html#${second.slice(0, 6)}`);
    await page.waitForURL(`${server.address}commit/${second}.html`);
    await openPage(page, 'commit.html#0123456789');
    await page.getByText('No measured commit begins with these digits').waitFor();
});

testPages('overview: a sparkline leads to its History, a mark to its commit, by keyboard', async function (page) {
    for (const [link, address] of [['a', /history\.html#/], ['a.mark', `**/commit/${second}.html`]]) {
        await openPage(page, '');
        await page.locator('tr', {hasText: facts.kernel}).first().locator('td').first().locator(link).first().focus();
        await page.keyboard.press('Enter');
        await page.waitForURL(address);
    }
});

testPages('overview: a number does not stick out of its column', async function (page) {
    await page.setViewportSize({width: 910, height: 800});
    await openPage(page, '');
    await page.locator('.overview td strong').evaluateAll((amounts) => amounts.forEach((amount) => { amount.textContent = '99,798,500 sectors'; }));
    await assertFits(page);
});
