// The charts in a browser: golden texts, figures made of given data, and how they fit.
'use strict';

const assert = require('node:assert/strict');
const fs = require('fs');
const { facts, UNREADABLE, testPages, openPage, waitUntilDrawn, assertFits, describePage } = require('./check.js');

const [first, , , , , narrow] = facts.commits;
const HOSTILE = encodeURIComponent(facts.hostile);

/* Pages of charts whose texts and marks are compared with golden ones. */
const [TIME, TURNED, SPUN, COPIES, LOADED, SPILLED] = [
    'time_kernel.Blur.time_back_to_back', 'time_kernel.Matrices.time_back_to_back', 'time_kernel.Spin.time_back_to_back',
    'track_control.Blur.track_copy_ratio', 'track_counted.Blur.track_sectors_loaded', 'track_compiled.Compiled.track_spill_bytes',
];
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
    `history.html#machine=nvidia-h200&benchmark=${SPUN}`,
    `history.html#machine=no-gpu-x86_64&benchmark=${SPILLED}&p-arch=sm_80&p-kernel=${ALL}&axis=logarithmic`,
];
testPages('charts have their golden texts', async function (page) {
    const texts = {};
    for (const address of CHARTS) {
        await openPage(page, address);
        texts[decodeURIComponent(address)] = await describePage(page);
        assert.doesNotMatch(texts[decodeURIComponent(address)], UNREADABLE, address);
    }
    fs.writeFileSync(process.env.CHARTS, JSON.stringify(texts));
});

testPages('a mark of a chart describes itself at the pointer', async function (page) {
    await openPage(page, 'bandwidth.html');
    const bar = page.locator('.bar rect').first();
    await bar.scrollIntoViewIfNeeded();
    const {x, y, width, height} = await bar.boundingBox();
    await page.mouse.move(x + width - 1, y + height / 2);
    const tip = (await page.locator('[aria-label=tip] text').allTextContents()).join(' ').replaceAll('\u200b', '');
    assert.match(tip, /^flip, .*: 0\.33 GB\/s, 32\.8 % of peak/);
});

testPages('commits lie apart by those between; a change of several is a band; only a failure breaks a line', async function (page) {
    await openPage(page, 'history.html');
    const [positions, [first, last], span, condition, parts] = await page.evaluate(function () {
        const spaced = placeCommits([1, 2, 102, 102].map((position) => ({position})));
        const display = document.getElementById('content').appendChild(document.createElement('div'));
        drawLines(display, {
            places: ['a', 'b', 'c', 'd'], positions: spaced, changes: [{place: 2, since: 1, title: ''}], conditions: [{place: 1, title: ''}],
            series: [[1, undefined, undefined, 3], [1, null, null, 3]].map((values, place) => ({name: `${place}`, values, titles: []})),
        });
        const listBoxes = (selector) => [...display.querySelectorAll(selector)].map((mark) => mark.getBoundingClientRect());
        const findMiddle = (box) => box.x + box.width / 2;
        return [
            spaced, listBoxes('.mark > *').map(findMiddle).slice(0, 2),
            listBoxes('.span rect').map(({left, right}) => [left, right])[0], findMiddle(listBoxes('.condition > *')[0]),
            [...display.querySelectorAll('.line path')].map((path) => path.getAttribute('d').split('M').length - 1),
        ];
    });
    assert.deepEqual(positions, [1, 2, 5, 6]);
    [...span, condition].forEach((x, place) => {
        const expected = first + (last - first) * [0.2, 0.8, 0.2][place];
        assert.ok(Math.abs(x - expected) < 1.5, `${x} is not ${expected}`);
    });
    assert.deepEqual(parts, [1, 2]);
});

testPages('times by fetch granularity have a curve for each limit, beside the sectors needed', async function (page) {
    await openPage(page, 'bandwidth.html');
    const shown = await page.evaluate(function () {
        const axes = {s: ['1', '2'], dtype: ['t']};
        const display = document.getElementById('content').appendChild(document.createElement('div'));
        const limits = [['k', 128], ['k', 32], ['k', 64], ['alone', 32]].map(([kernel, fetched]) => ({
            benchmark: {fetched, kernel, along: 's', axes, chosen: {dtype: 't'}},
            points: axes.s.map((s) => ({params: {s, dtype: 't'}, value: 1e-6 * s * fetched})),
        }));
        const counted = {kind: 'counted', kernel: 'k', name: 'K.track_load_sectors', id: 9, axes};
        drawFetchFigures(display, {benchmarks: {counted}}, {}, limits, {9: [4, 8]});
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
});

testPages('on a phone, all figures but the first are folded, and drawn when opened', async function (page) {
    await page.setViewportSize({width: 390, height: 800});
    await openPage(page, 'bandwidth.html');
    const count = await page.locator('svg.plot').count();
    await page.locator('details.folded summary').first().click();
    await page.locator('details.folded svg.plot').first().waitFor();
    assert.ok(await page.locator('svg.plot').count() > count);
    await assertFits(page);
});

testPages('charts follow the width of the window', async function (page) {
    await openPage(page, 'bandwidth.html');
    const readWidth = () => page.locator('main svg.plot').first().getAttribute('width').then(Number);
    const width = await readWidth();
    await page.setViewportSize({width: 500, height: 700});
    await waitUntilDrawn(page, 1);
    assert.ok(await readWidth() < width);
});

testPages('a change of two lines spans the commits of both', async function (page) {
    await openPage(page, 'history.html');
    assert.deepEqual(await page.evaluate(function () {
        const commits = [1, 2, 10].map((position) => ({position, commit: `${position}`.repeat(8)}));
        const [kept, changed] = [false, true].map((isChanged) => ({code: {sha256: '', changed: isChanged}}));
        const lines = [['a', [kept, kept, changed]], ['b', [kept, {code: null}, changed]]].map(([name, entries]) => ({name, entries}));
        return listChanges(commits, lines);
    }), [{place: 2, since: 0, title: '10101010: machine code changed of a, b, in one of 9 commits since 11111111'}]);
});

testPages('a line ends where another version of a generator made other machine code', async function (page) {
    await openPage(page, 'history.html');
    const parts = await page.evaluate(function () {
        const [text, origins] = [{k: [[0, 'a'], [2, 'b'], [4, 'c']]}, {5: ['1234']}];
        const listParts = (versions, codes, branches = {}) => Object.values(listEntries(
            0, {commits: versions.map((version, row) => ({commit: `c${row}`, branch: branches[row] || null}))},
            {values: versions.map(() => [1]), code_names: ['k'], machine_code: [0], origins}, codes, (value) => value,
            ({commit}) => versions[Number(commit.slice(1))])).map(({part}) => part);
        const versions = ['1', '2', '3', '3', null, '4', '5'];
        return [listParts(versions, text), listParts(versions, {}), listParts(['1', '2', '1'], {}, {1: 'side'})];
    });
    // Equal machine code at 1, of an earlier commit at 5; unknown version at 4.
    assert.deepEqual(parts, [[0, 0, 1, 1, 1, 1, 1], [0, 1, 2, 2, 2, 2, 3], [0, 0, 0]]);
});

testPages('numbers of two versions of a generator are not compared', async function (page) {
    await openPage(page, 'compare.html');
    assert.deepEqual(await page.evaluate(function () {
        const index = {generated: ['spin']};
        const commits = ['1', '2', '2'].map((version) => ({generators: {[version]: [7]}}));
        const [spin, other] = ['spin', 'blur'].map((kernel) => ({benchmark: {id: 7, lines: 'dtype', kernel}, params: {}}));
        const unknown = {...spin, benchmark: {...spin.benchmark, id: 8}};
        return [[0, 1, spin], [1, 2, spin], [0, 1, other], [0, 1, unknown]].map(
            ([base, head, cell]) => isRegenerated(index, [commits[base], commits[head]], cell));
    }), [true, false, false, false]);
});

/* Functions of the pages on given data, and the results. */
const SHARED = {
    'the newest commit with half as many values as any': [() => findFullest(
        [30, 29, 15, 14].map((count) => ({counts: [9, count]})), [{id: 1}]).counts, [9, 15]],
    'numbers that repeat': [() => parseRuns('64,,-,,0,7'), [64, 64, null, null, 0, 7]],
    'numbers in titles have their names': [() => joinTitle('Blur', 'by w', {h: '64', size: '2x3', dtype: 'int8'}), 'Blur, by w, h 64, 2x3, int8'],
    'places by size': [() => listPlaces(['10x10', '9', '2x3'].map((n) => ({params: {n}, value: 1})), 'n'), ['2x3', '9', '10x10']],
    'the picked value, or else that of the summary': [() => fixAxes(
        {axes: {w: [], h: []}, chosen: {w: '1', h: '2'}}, ['w', 'h', 'dtype'], {w: '3', h: '4'}, [{params: {w: '3', h: '2'}, value: 1}]),
    {w: '3', h: '2'}],
};
testPages('shared functions give their results', async function (page) {
    await openPage(page, 'bandwidth.html');
    for (const [title, [compute, result]] of Object.entries(SHARED)) {
        assert.deepEqual(await page.evaluate(`(${compute})()`), result, title);
    }
});
