// Overview and commits: what they say, at two widths, where links lead, and that a keyboard gets there.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { known, here, visit, go } = require('./check.js');
const {commit, subject, author, files, compared, sentence, newest} = known.changes;

/* What must be read on each page; the first is the site's address alone. */
const PAGES = {
    overview: ['', ['How fast is each kernel', 'H200', 'no GPU', 'transpose_vectorized', '% of a copy', 'sectors', /against [0-9a-f]{8}/, 'What changed lately', new RegExp(newest)]],
    commit: [`commit.html#${commit.slice(0, 10)}`, [commit.slice(0, 8), new RegExp(sentence), subject, author, ...files, compared, /block_along_y\(\) \* TILE/, /\d+ of 35 slower/, '12800x12800']],
    commits: ['commit.html', [commit.slice(0, 8), new RegExp(sentence), subject, /H200, no GPU/]],
};

for (const width of [390, 1440]) {
    for (const [name, [address, texts]] of Object.entries(PAGES)) {
        test(`${name} at ${width} pixels`, () => visit(async function (page) {
            await go(page, here.site + address);
            await page.locator('main .cards').first().waitFor();
            const shown = (await page.locator('main').innerText()).replaceAll(/\s+/g, ' ');
            texts.forEach((text) => assert.ok(text instanceof RegExp ? text.test(shown) : shown.includes(text), `${text} is not in ${shown}`));
            assert.doesNotMatch(shown, /n\/a|NaN|undefined|None/);
            const boxes = await page.locator('.cards').evaluateAll(
                (found) => found.map((one) => [one.clientWidth, one.scrollWidth - one.clientWidth]));
            assert.ok(boxes[0][0] > 0.85 * width, `${boxes[0][0]} of ${width} pixels are used`);
            const scrolls = name === 'overview' && width === 1440; // five machines
            assert.ok(scrolls || Math.max(...boxes.map(([, hidden]) => hidden)) <= 0, `${boxes} pixels of a table are out of sight`);
        }, {width, colorScheme: width === 1440 ? 'dark' : 'light'}));
    }
}

test('overview: a sparkline leads to its History, a mark to its commit, by keyboard too', () => visit(async function (page) {
    await go(page, here.site);
    const cell = page.locator('tr', {hasText: known.changed_kernel}).first().locator('td').first();
    const [line, mark] = [cell.locator('a').first(), cell.locator('a.mark').first()];
    assert.match(await mark.getAttribute('aria-label'), new RegExp(`^${known.changed_commit}: .*machine code changed`));
    await mark.focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/commit/${known.changed_commit}*.html`);
    await go(page, here.site);
    await line.focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(/history\.html#/);
    await page.locator('.project-chart svg.plot').waitFor();
    assert.ok((await page.locator('main').innerText()).includes('Transpose, DRAM'));
}));

test('overview: where there is no GPU, sectors stand in the place of times, and no cell is empty', () => visit(async function (page) {
    await go(page, here.site);
    const at = await page.locator('thead th').allInnerTexts().then((heads) => heads.findIndex((head) => head.startsWith('no GPU')));
    const cells = await page.locator(`.overview tbody td:nth-child(${at + 1})`).allInnerTexts();
    assert.ok(cells.length > 10 && cells.every((text) => /^\s*[\d,.]+ sectors/.test(text)), cells.join('\n'));
}));

test('commits: filters', () => visit(async function (page) {
    const rows = async function (query) {
        await go(page, `${here.site}commit.html#${query}`);
        return page.locator('#rows tr:not([hidden])').evaluateAll((found) => found.map((row) => row.textContent));
    };
    const every = await rows('');
    const onGpu = await rows('machine=nvidia-h200');
    assert.ok(onGpu.length > 0 && onGpu.every((row) => row.includes('H200')));
    const slower = await rows('show=worse&machine=nvidia-h200');
    assert.ok(slower.length > 0 && slower.length < every.length);
    slower.forEach((row) => assert.match(row, /slower|mixed|rose|broken/));
    (await rows('kernel=matmul_tiled')).forEach((row) => assert.match(row, /matmul_tiled|mixed|rose/));
    const [accepted, ...others] = await rows('show=acknowledged');
    assert.ok(accepted.includes(known.changes.accepted) && others.length === 0);
}));

test('every link of a page to another is there', () => visit(async (page) => {
    const found = new Set();
    for (const address of ['', 'commit.html', `commit/${commit}.html`]) {
        await go(page, here.site + address);
        const links = await page.locator('a').evaluateAll((all) => all.map(
            (one) => new URL(one.href.baseVal ?? one.href, location.href).href.replace(/#.*/, '')));
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
