// What the results say is in the tables and on the charts.
'use strict';

const assert = require('node:assert/strict');
const fs = require('fs');
const { test } = require('node:test');
const { known, here, visit, go, rows, hasRows } = require('./check.js');

/* Look at a page of the project once its tables are there. */
const on = (address, look) => visit(async function (page) {
    await go(page, here.site + address);
    await look(page, await rows(page), page.locator('main'));
});

/* Some mark of a chart says at the pointer what it is. */
async function hasTip(page, marks, wanted) {
    const found = [];
    for (const mark of await marks.all()) {
        await mark.scrollIntoViewIfNeeded();
        const {x, y, width, height} = await mark.boundingBox();
        await page.mouse.move(x + width - 1, y + height / 2);
        found.push((await page.locator('[aria-label=tip] text').allTextContents()).join(' ').replaceAll('\u200b', ''));
        if (found.at(-1).includes(wanted)) {
            return;
        }
    }
    assert.fail(`${wanted} is not among\n${found.join('\n')}`);
}

/* That several GPUs took the times is told, and which; or nothing, where one took all. */
function hasGpus(text, gpus) {
    const told = text.match(/Several GPUs of the kind took these times: ([0-9a-f, ]+)\. .* no difference of up to 8 % a change\./);
    assert.deepEqual(told === null ? null : told[1].split(', ').sort(), gpus.length < 2 ? null : gpus);
}

test('bandwidth', () => on(`bandwidth.html#commit=${known.commit}`, async function (page, found, display) {
    hasRows(found, known.bandwidth_rows);
    for (const wanted of known.bandwidth_titles) {
        await hasTip(page, display.locator('section', {hasText: known.bandwidth_figure}).first().locator('.bar rect'), wanted);
    }
    assert.ok((await display.innerText()).includes(` · GPU ${known.gpu} · driver`));
    hasGpus(await display.innerText(), [known.gpu]);
}));

test('bandwidth: the L2 cache ends between the matrices that fit and those that do not', () => on('bandwidth.html', async function (page, found, display) {
        const chart = display.locator('section', {hasText: 'Transpose, DRAM, by rows x columns'}).locator('svg').first();
        const [mark, inside, outside] = await Promise.all(['L2: 60 MiB', '2048x2048', '5003x2999'].map(
            (place) => chart.getByText(place, {exact: true}).boundingBox()));
        const middle = (box) => box.x + box.width / 2;
        assert.ok(middle(inside) < middle(mark) && middle(mark) < middle(outside));
    }));

test('bandwidth: a commit is laid over another', () => on(`bandwidth.html#commit=${known.commit}&with=${known.older_commit}`, async function (page, found, display) {
        hasRows(found, known.compared_rows);
        assert.ok(await display.locator('svg .before line').count() > 0);
        const legends = display.getByText(`commit ${known.older_commit}`, {exact: true});
        // Only charts that show something of it.
        const drawn = 'section:is(:has(.before line), :has(.dashed path[d*="L"]))';
        assert.ok(await legends.count() < await display.locator('section:has(.project-chart)').count());
        assert.equal(await legends.count(), await display.locator(drawn).count());
        hasGpus(await display.innerText(), known.compared_gpus);
    }));

test('bandwidth: products have GFLOP/s on their charts', () => on('bandwidth.html', async function (page, found, display) {
    const chart = display.locator('section', {hasText: /^Matrix product, DRAM, 1024/}).locator('svg.plot').first();
    assert.equal(await chart.getByText('GFLOP/s', {exact: true}).count(), 1);
    const shown = found.find((cells) => cells[0] === 'matmul_tiled' && cells.length === 6).at(-1);
    assert.equal(await chart.locator('.value text').getByText(shown, {exact: true}).count(), 1);
}));

test('machines stand beside each other', async function () {
    await on(`bandwidth.html#with=${known.shared}`, async function (page, found, display) {
        const [, , , rate, , other, ratio] = found.find((cells) => cells[0] === known.changed_kernel && cells.length === 7);
        assert.ok(other > 0 && Math.abs(ratio - rate / other) < 2e-3, `${rate} and ${other}: ${ratio}`);
        assert.ok(await display.getByText('H100', {exact: true}).count() > 0);
        hasGpus(await display.innerText(), [known.gpu]); // another machine's is no other GPU of this one
    });
});

/* What the pages share, with facts made up: what is asked, and the answer. */
const SHARED = {
    'the values of a commit by benchmark': [() => count({has: [4, 5, 7], values: [1, 10, 100]}, [{id: 7}, {id: 4}, {id: 9}]), 101],
    'the newest commit with half as many values as any': [() => fullest(
        [30, 29, 15, 14].map((each) => ({has: [4], values: [each]})), [{id: 4}]).values, [15]],
    'what has no reference is said to be so, by its kernel or by a line of dtypes': [() => [
        {lines: 'kernel', kernel: ''}, {lines: 'dtype', kernel: 'blur'}, {lines: 'dtype', kernel: 'sharpen'},
    ].map((benchmark) => label({unverified: ['blur']}, benchmark, benchmark.lines === 'kernel' ? 'blur' : 'float32')),
    ['blur, not verified', 'float32, not verified', 'float32']],
    'numbers in titles have their names': [() => titled('Blur', 'by w', {h: '64', size: '2x3', dtype: 'int8'}),
        'Blur, by w, h 64, 2x3, int8'],
    'places by size': [() => placesOf(['10x10', '9', '2x3'].map((n) => ({params: {n}, value: 1})), 'n'), ['2x3', '9', '10x10']],
    'what was picked, or else what tells most': [() => fixedAt(
        {axes: {w: [], h: []}, chosen: {w: '1', h: '2'}}, ['w', 'h', 'dtype'], {w: '3', h: '4'}, [{params: {w: '3', h: '2'}, value: 1}]),
    {w: '3', h: '2'}],
    'the GPUs that measured a benchmark': [() => gpusOf({gpus: {a: [4, 7], b: [7], c: [4]}}, [{id: 4}]), ['a', 'c']],
};

test('what the pages share', () => on('bandwidth.html', async function (page) {
    for (const [what, [ask, answer]] of Object.entries(SHARED)) {
        assert.deepEqual(await page.evaluate(`(${ask})()`), answer, what);
    }
}));

test('a figure is taken home: its table as CSV', () => on(`history.html#machine=${encodeURIComponent(known.hostile)}&benchmark=` +
        'track_compiled.Compiled.track_spill_bytes', async function (page, found, display) {
    const [download] = await Promise.all([page.waitForEvent('download'), display.getByRole('button', {name: /^CSV of/}).click()]);
    assert.ok(download.suggestedFilename().endsWith('.csv'));
    const lines = fs.readFileSync(await download.path(), 'utf-8').trim().split('\n');
    assert.equal(lines.length, found.length + 1);
    assert.ok(lines[0].includes(known.hostile.replaceAll('"', '""')), lines[0]);
    assert.ok(lines[1].startsWith(`${found[0][0]},${found[0][1]},${found[0][2]},`), lines[1]);
}));

test('transactions', () => on('transactions.html', async function (page, found, display) {
    hasRows(found, known.transactions_rows);
    assert.ok((await display.locator('.listing .costly').allTextContents()).some(
        (line) => line.includes('tile[threadIdx.x][threadIdx.y]')));
}));
