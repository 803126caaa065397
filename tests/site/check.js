// Shared parts of the browser tests: the site, served on this host alone; a browser that can reach nothing else; assertions on a page.
// test_pages.py sets the environment: SITE (the published folder), CHROMIUM, CHARTS (a file for texts), and KNOWN (facts on the results,
// as JSON).
'use strict';

const assert = require('node:assert/strict');
const fs = require('fs');
const http = require('http');
const path = require('path');
const { after, before, test } = require('node:test');
const { chromium } = require('playwright-core');

const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf-8');
const TYPES = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css'};

const facts = JSON.parse(process.env.KNOWN);

/** Texts that no page shows, in any view. */
const UNREADABLE = /n\/a|NaN|undefined|None|null/;

/** The address of the served site, once it is served. */
const server = {address: null};

let browser, sharedPage;
const problems = [];
const host = http.createServer(function (request, response) {
    const place = decodeURIComponent(new URL(request.url, 'http://host').pathname);
    const file = path.join(process.env.SITE, place.endsWith('/') ? place + 'index.html' : place);
    const exists = file.startsWith(process.env.SITE) && fs.existsSync(file);
    response.writeHead(exists ? 200 : 404, {'content-type': TYPES[path.extname(file)] || 'application/octet-stream'});
    response.end(exists ? fs.readFileSync(file) : '');
});
before(async function () {
    browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: [
        '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    ]});
    sharedPage = await (await browser.newContext()).newPage();
    sharedPage.setDefaultTimeout(60000); // the host may be busy
    sharedPage.on('console', (message) => message.type() === 'error' && problems.push('console: ' + message.text()));
    sharedPage.on('pageerror', (error) => problems.push('exception: ' + error.message));
    sharedPage.on('requestfailed', (request) => problems.push(`failed: ${request.url()} (${request.failure().errorText})`));
    sharedPage.on('response', (response) => response.status() >= 400 && problems.push(`${response.status()}: ${response.url()}`));
    await new Promise((resolve) => host.listen(0, '127.0.0.1', resolve));
    server.address = `http://127.0.0.1:${host.address().port}/`;
});
after(async function () {
    await browser.close();
    host.close();
});

/** Define a test of pages. Problems in the browser fail it, unless `check` provokes them and returns false. One tab serves all tests, one
 * after the other: starting another takes longer than most of them.
 * @type {(title: string, check: (page: Page) => Promise) => void} */
const testPages = (title, check) => test(title, async function () {
    const page = sharedPage;
    await page.goto('about:blank');
    await page.unrouteAll();
    await page.setViewportSize({width: 1300, height: 900});
    await page.emulateMedia({colorScheme: 'light'});
    problems.length = 0;
    if (await check(page) !== false) {
        assert.deepEqual(problems, []);
    }
});

/** Go to an address, and wait until all of the page is there: pages with scripts say so.
 * @type {(page: Page, address: string) => Promise} */
async function openPage(page, address) {
    await page.goto('about:blank');
    await page.goto(server.address + address);
    await waitUntilDrawn(page);
}

/** Wait until a page has been drawn more often than `turn`.
 * @type {(page: Page, turn?: number) => Promise} */
const waitUntilDrawn = (page, turn = 0) => page.waitForFunction(
    (least) => document.getElementById('content') === null || Number(document.documentElement.dataset.drawn) > least, turn);

/** Assert that nothing in a page violates a rule of axe: WCAG 2 (A, AA) and good practice. axe compares values on bars with the paper;
 * test_values_on_bars_have_contrast compares them with the bars.
 * @type {(page: Page) => Promise} */
async function assertAccessible(page) {
    if (!await page.evaluate(() => 'axe' in window)) {
        await page.evaluate(AXE);
    }
    const violations = await page.evaluate(async () => (await window.axe.run(document, {resultTypes: ['violations']})).violations);
    assert.deepEqual(violations.map(({id, nodes}) => [id, nodes.map((node) => node.html)]), []);
}

/** Assert that nothing of a page sticks out, nor is hidden in a box that scrolls sideways; wide tables of charts may.
 * @type {(page: Page) => Promise} */
async function assertFits(page) {
    const overflow = await page.evaluate(() => Math.max(
        document.documentElement.scrollWidth - window.innerWidth,
        ...[...document.querySelectorAll('.cards, .listing')].map((box) => box.scrollWidth - box.clientWidth),
        ...[...document.querySelectorAll('main :is(select, svg, p, button)')].filter((part) => part.closest('.project-table') === null).map(
            (part) => part.getBoundingClientRect().right - window.innerWidth)));
    assert.ok(overflow <= 0, `${overflow} pixels stick out`);
}

const MARKS = ['line', 'mark', 'hollow', 'band', 'change', 'span', 'condition', 'bar', 'ceiling'];

/** Return the texts of a page of charts, and the number of marks of each kind; lines must have the colours of their marks.
 * @type {(page: Page) => Promise<string>} */
const describePage = (page) => page.evaluate((kinds) => [document.querySelector('main').innerText, ...[...document.querySelectorAll('svg.plot')].map((plot) => [
    ...kinds.map((kind) => `${plot.querySelectorAll(`.${kind} > *`).length} ${kind}`).filter((text) => !text.startsWith('0 ')),
    ...[...plot.querySelectorAll(':is(.change, .span, .condition) title')].map((title) => title.textContent),
    new Set([...plot.querySelectorAll('.line path')].map((line) => getComputedStyle(line).stroke)).symmetricDifference(
        new Set([...plot.querySelectorAll('.mark path')].map((mark) => getComputedStyle(mark).fill).filter((fill) => fill !== 'rgb(255, 255, 255)'))
    ).size > 0 && plot.querySelector('.line') ? 'other colours' : '',
].filter(Boolean).join(', '))].join('\n'), MARKS);

module.exports = {facts, server, UNREADABLE, testPages, openPage, waitUntilDrawn, assertAccessible, assertFits, describePage};
