// Overview, commits and Regressions: what they say, at three widths, and that every link arrives.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { known, here, visit, go } = require('./check.js');
const SLOWER = known.changes.slower;

/* What must be read on each page; the first is the site's address alone. */
const PAGES = {
    overview: ['', [
        'Got slower last', 'Got faster last', 'What changed lately',
        SLOWER.kernel, SLOWER.commit, SLOWER.subject, SLOWER.extent, SLOWER.why,
    ]],
    commit: [`commit.html#${known.changes.commit.slice(0, 10)}`, [
        known.changes.commit, known.changes.subject, known.changes.author, ...known.changes.files, known.changes.compared,
        '28 of 35 slower',
    ]],
    regressed: ['regressed.html', [
        known.changes.commit.slice(0, 8), 'nvidia-h200', '28 of 35 slower', 'slower, or more, worst first',
        '926c2401 to 952ced29: 10 of these 138 commits touch the kernels', // the last of them alone would be blamed for what another did
    ]],
};

for (const width of [390, 1440]) {
    for (const [name, [address, texts]] of Object.entries(PAGES)) {
        test(`${name} at ${width} pixels`, () => visit(async function (page) {
            await go(page, here.site + address);
            await page.locator('main .changes-table').first().waitFor();
            const shown = (await page.locator('main').innerText()).replaceAll(/\s+/g, ' ');
            texts.forEach((text) => assert.ok(shown.includes(text), `${text} is not in ${shown}`));
            const wide = await page.locator(':is(.leads, .changes-table)').first().boundingBox();
            assert.ok(wide.width > 0.85 * width, `${wide.width} of ${width} pixels are used`);
            const hidden = await page.locator('.changes-table').evaluateAll(
                (found) => Math.max(...found.map((one) => one.scrollWidth - one.clientWidth)));
            assert.ok(hidden <= 0, `${hidden} pixels of a table are out of sight`);
        }, {width, colorScheme: width === 1440 ? 'dark' : 'light'}));
    }
}

test('the heat map: better is lower for counts too', () => visit(async function (page) {
    await go(page, here.site);
    for (const [machine, verdict] of Object.entries({'nvidia-h200': 'verdict-faster', 'no-gpu-x86_64': 'verdict-fewer'})) {
        const [found, heads] = await page.locator(`[data-machine="${machine}"] .heat table`).evaluate(function (table, [kernel, commit]) {
            const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
            const row = [...table.tBodies[0].rows].find((one) => one.cells[0].textContent === kernel);
            return [row.cells[names.indexOf(commit)].className, names];
        }, known.changes.conflicts);
        assert.equal(found, verdict);
        const [older, newer] = known.changes.conflicts.slice(1).map((commit) => heads.indexOf(commit));
        assert.ok(0 < newer && newer < older, heads.join()); // newest on the left
    }
}));

test('regressions: no row twice, filters', () => visit(async function (page) {
    const rows = async function (query) {
        await go(page, `${here.site}regressed.html#${query}`);
        return page.locator('tbody tr:not([hidden])').evaluateAll((found) => found.map(
            (row) => [0, 1, 2, 3, 4, 5, 6].map((at) => row.cells[at].textContent.trim())));
    };
    const every = await rows('show=every%20change');
    assert.equal(new Set(every.map((row) => row.join())).size, every.length);
    const slower = await rows('show=slower&machine=nvidia-h200');
    assert.ok(slower.length > 0 && slower.length < every.length);
    slower.forEach((row) => assert.ok(row[1] === 'nvidia-h200' && row[5].includes('slower'), row));
    const newest = (await rows('show=every%20change&order=newest%20first')).map((row) => /\d{4}-\d\d-\d\d$/.exec(row[2])[0]);
    assert.deepEqual(newest, [...newest].sort().reverse());
    await rows('machine=no-gpu-x86_64');
    await page.getByRole('link', {name: /^\d+ rows? (?:is|are) acknowledged$/}).click();
    await page.locator('caption', {hasText: 'acknowledged'}).waitFor();
    assert.ok((await page.locator('tbody').innerText()).includes(known.changes.accepted));
}));

test('every link of a page to another is there', () => visit(async (page) => {
    const found = new Set();
    for (const address of ['', 'regressed.html', 'commit.html', `commit/${known.changes.commit}.html`]) {
        await go(page, here.site + address);
        const links = await page.locator('a').evaluateAll((all) => all.map((one) => one.href.replace(/#.*/, '')));
        links.forEach((link) => found.add(link));
    }
    assert.ok(found.size >= 12);
    for (const link of found) {
        assert.equal((await page.request.head(link)).status(), 200, link);
    }
}));

test('a commit that was not measured is told', () => visit(async function (page) {
    await go(page, `${here.site}commit.html#0123456789`);
    await page.getByText('No measured commit begins so').waitFor();
}));
