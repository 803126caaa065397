// Overview, the page of a commit and Regressions: what they say, at three widths, and that every link arrives.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { known, setup } = require('./check.js');
const { settled } = require('./pages.js');

const here = setup({real: process.env.SITE});
const SLOWER = known.changes.slower;

/* What must be read on each page; the first is the site's address alone. */
const PAGES = {
    overview: ['', [
        'Got slower last', 'Got faster last', 'What changed lately',
        SLOWER.kernel, SLOWER.commit, SLOWER.subject, SLOWER.extent, SLOWER.why,
    ]],
    commit: [`#commit?hash=${known.changes.commit.slice(0, 10)}`, [
        known.changes.commit, known.changes.subject, known.changes.author, ...known.changes.files, known.changes.compared,
        '28 of 35 slower',
    ]],
    regressed: ['#regressed', [
        known.changes.commit.slice(0, 8), 'nvidia-h200', '28 of 35 slower', 'slower, or more, worst first',
        '926c2401 to 952ced29: 10 of these 138 commits touch the kernels', // the last of them alone would be blamed for what another did
    ]],
};

for (const width of [390, 1440, 1920]) {
    for (const [name, [address, texts]] of Object.entries(PAGES)) {
        test(`${name} at ${width} pixels`, () => here.visit(async function (page) {
            await page.goto(here.sites.real + address);
            const display = page.locator(`#${name}-display`);
            await display.locator('table').last().waitFor();
            const shown = (await display.innerText()).replaceAll(/\s+/g, ' ');
            texts.forEach((text) => assert.ok(shown.includes(text), `${text} is not in ${shown}`));
            assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
            const wide = await display.locator(':is(.leads, .changes-table)').first().boundingBox();
            assert.ok(wide.width > 0.85 * width, `${wide.width} of ${width} pixels are used`);
            const hidden = await display.locator('.changes-table').evaluateAll(
                (found) => Math.max(...found.map((one) => one.scrollWidth - one.clientWidth)));
            assert.ok(hidden <= 0, `${hidden} pixels of a table are out of sight`);
        }, {viewport: {width, height: 900}, colorScheme: width === 1440 ? 'dark' : 'light'}));
    }
}

test('of several kernels that got slower, the lead is what cost most', () => here.visit(async function (page) {
    await page.route('**/project/data/overview.js*', async function (route) {
        const text = await (await route.fetch()).text();
        const piece = JSON.parse(JSON.parse(/^coalescing\.files\.arrived\((".*")\);\n$/.exec(text)[1]));
        const {groups} = piece.changes.find(
            (change) => change.head.startsWith(SLOWER.commit) && change.groups.some((one) => one.slower > 0));
        const group = groups.find((one) => one.slower > 0);
        groups.splice(0, groups.length, ...['least', 'most', 'more'].map(
            (kernel, at) => ({...group, kernel, cost: [0.1, 0.3, 0.2][at]})));
        await route.fulfill({contentType: 'text/javascript', body: `coalescing.files.arrived(${JSON.stringify(JSON.stringify(piece))});`});
    });
    await page.goto(here.sites.real);
    assert.equal(await page.locator('.lead-slower .what strong').textContent(), 'most');
}));

test('sparklines: a higher rate stands higher, from 0', () => here.visit(async function (page) {
    await page.goto(`${here.sites.real}#overview?machine=nvidia-h200`);
    await page.locator('.sparkline').first().waitFor();
    const lines = await page.locator('.sparkline').evaluateAll((found) => found.map((one) => [
        one.querySelector('line').y1.baseVal.value,
        [...one.querySelectorAll('circle')].map((dot) => [Number(/: ([\d.]+) /.exec(dot.textContent)[1]), dot.cy.baseVal.value]),
        [...one.querySelector('polyline').points].map(({y}) => y),
    ]));
    assert.ok(lines.some(([, dots]) => Math.max(...dots.map(([rate]) => rate)) > 1.3 * Math.min(...dots.map(([rate]) => rate))));
    for (const [ground, dots, ys] of lines) {
        assert.deepEqual(ys.map((y) => y.toFixed(2)), dots.map(([, y]) => y.toFixed(2)));
        const [most, top] = dots.reduce((one, other) => other[0] > one[0] ? other : one);
        dots.forEach(([rate, y]) => assert.ok(Math.abs((ground - y) / (ground - top) - rate / most) < 0.15, `${dots}`));
    }
}));

test('the heat map: better is lower for counts too', () => here.visit(async function (page) {
    const wanted = {'nvidia-h200': 'verdict-faster', 'no-gpu-x86_64': 'verdict-fewer'};
    for (const [machine, verdict] of Object.entries(wanted)) {
        await page.goto(`${here.sites.real}#overview?machine=${machine}`);
        await page.locator('#overview-machine').waitFor();
        await page.waitForFunction((name) => document.querySelector('.heat caption').textContent.includes(name), machine);
        const found = await page.locator('.heat table').evaluate(function (table, [kernel, commit]) {
            const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === commit);
            return [...table.tBodies[0].rows].find((row) => row.cells[0].textContent === kernel).cells[column].className;
        }, known.changes.conflicts);
        assert.equal(found, verdict);
    }
    await page.goto(`${here.sites.real}#overview?machine=nvidia-h200`);
    await page.waitForFunction(() => document.querySelector('.heat caption').textContent.includes('nvidia-h200'));
    const heads = await page.locator('.heat thead th').allTextContents();
    const [newer, older] = [SLOWER.commit, known.changes.conflicts[1]].map((commit) => heads.indexOf(commit));
    assert.ok(0 < newer && newer < older, heads.join()); // newest on the left
}));

test('regressions: no row twice, filters, and asv’s own list', () => here.visit(async function (page) {
    const rows = async function (query) {
        await page.goto(`${here.sites.real}#regressed?${query}`);
        await page.locator('#regressed-display table').waitFor();
        await settled(page);
        return page.locator('#regressed-display tbody tr').evaluateAll((found) => found.map(
            (row) => [0, 1, 2, 3, 4, 5, 6].map((at) => row.cells[at].textContent)));
    };
    const every = await rows('show=every%20change');
    assert.equal(new Set(every.map((row) => row.join())).size, every.length);
    const slower = await rows('show=slower&machine=nvidia-h200');
    assert.ok(slower.length > 0 && slower.length < every.length);
    slower.forEach((row) => assert.ok(row[1] === 'nvidia-h200' && row[5].includes('slower'), row));
    const cost = ([, , , , , extent]) => { // how many became slower, times by how much
        const [, count, of, percent] = /^(\d+) of (\d+) slower \((?:mean )?\+([\d.]+)/.exec(extent);
        return count / of * Math.log(1 + percent / 100);
    };
    slower.slice(1).forEach((row, at) => assert.ok(cost(row) <= cost(slower[at]) + 5e-3, `${slower[at]} before ${row}`));
    await rows('machine=no-gpu-x86_64');
    const accepted = /^\d+ rows? (?:is|are) acknowledged$/;
    await page.getByRole('link', {name: accepted}).click();
    await page.locator('#regressed-display caption', {hasText: 'acknowledged'}).waitFor();
    assert.ok((await page.locator('#regressed-display tbody').innerText()).includes(known.changes.accepted));
    // Where it leads to is opened below.
    assert.equal(await page.getByRole('link', {name: 'asv’s own list'}).getAttribute('href'), '#regressions');
}));

test('every commit link of asv’s pages and of these leads to that commit', () => here.visit(async function (page) {
    const found = new Set();
    for (const [address, ready] of [['#regressions', '#regressions-body td'], ['#summarylist', '#summarylist-body td'],
        ['', '.heat table'], ['#regressed', '#regressed-display table']]) {
        await page.goto('about:blank');
        await page.goto(here.sites.real + address);
        await page.locator(ready).first().waitFor({state: 'attached', timeout: 60000}); // asv's list is long
        await settled(page);
        const links = await page.locator('a[href*="#commit"]').evaluateAll((all) => all.map((one) => one.href));
        links.forEach((link) => found.add(link));
        assert.equal(await page.locator('a[href="#"], a[href=""]').evaluateAll((all) => all.filter(
            (one) => /^[0-9a-f]{8}/.test(one.textContent)).length), 0);
    }
    assert.ok(found.size >= 8, [...found].join());
    for (const link of found) {
        await page.goto(link);
        const hash = /hash=([0-9a-f]+)$/.exec(link)[1];
        await page.waitForFunction((start) => [...document.querySelectorAll('#commit-display code')].some(
            (one) => one.textContent.length === 40 && one.textContent.startsWith(start)), hash);
        assert.equal(await page.locator('#commit-display .project-notice', {hasText: 'No measured commit'}).count(), 0);
    }
}));

test('a commit that was not measured is told', () => here.visit(async function (page) {
    await page.goto(`${here.sites.real}#commit?hash=0123456789`);
    await page.getByText('No measured commit 0123456789 here').waitFor();
}));
