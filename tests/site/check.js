// What the tests share: the site, served on this host alone; a browser that can reach nothing else; and what they look for on a page.
// test_pages.py says in the environment: SITE (the published folder), CHROMIUM, and KNOWN (what the results say, as JSON).
'use strict';

const assert = require('node:assert/strict');
const fs = require('fs');
const http = require('http');
const path = require('path');
const { after, before } = require('node:test');
const { chromium } = require('playwright-core');

const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf-8');
const TYPES = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css'};

/* Where the site is served. */
const here = {};

let browser, page;
const problems = [];
const server = http.createServer(function (request, response) {
    const wanted = decodeURIComponent(new URL(request.url, 'http://host').pathname);
    const file = path.join(process.env.SITE, wanted.endsWith('/') ? wanted + 'index.html' : wanted);
    const isThere = file.startsWith(process.env.SITE) && fs.existsSync(file);
    response.writeHead(isThere ? 200 : 404, {'content-type': TYPES[path.extname(file)] || 'application/octet-stream'});
    response.end(isThere ? fs.readFileSync(file) : '');
});
before(async function () {
    browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: [
        '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    ]});
    page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(60000); // the host may be busy
    page.on('console', (message) => message.type() === 'error' && problems.push('console: ' + message.text()));
    page.on('pageerror', (error) => problems.push('exception: ' + error.message));
    page.on('requestfailed', (request) => problems.push(`failed: ${request.url()} (${request.failure().errorText})`));
    page.on('response', (response) => response.status() >= 400 && problems.push(`${response.status()}: ${response.url()}`));
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    here.site = `http://127.0.0.1:${server.address().port}/`;
});
after(async function () {
    await browser.close();
    server.close();
});

/* Run `look(page)` on a page; nothing may go wrong there but what `look` provokes: then it returns false. One tab serves all, one
   after the other: starting another takes longer than most looks. */
const visit = (look) => async function () {
    await page.goto('about:blank');
    await page.unrouteAll();
    await page.setViewportSize({width: 1300, height: 900});
    await page.emulateMedia({colorScheme: 'light'});
    problems.length = 0;
    if (await look(page) !== false) {
        assert.deepEqual(problems, []);
    }
};

/* Go to an address, and wait until all of the page is there: pages of charts say so. */
async function go(page, address) {
    await page.goto('about:blank');
    await page.goto(here.site + address);
    await drawn(page);
}

const drawn = (page, turn = 0) => page.waitForFunction(
    (least) => document.getElementById('content') === null || Number(document.documentElement.dataset.drawn) > least, turn);

/* No violation of WCAG 2 (A, AA) in a page of the project. axe compares values on bars with the paper: test_pages.py has the bars. */
async function accessible(page) {
    if (!await page.evaluate(() => 'axe' in window)) {
        await page.evaluate(AXE);
    }
    const violations = await page.evaluate(async () => (await window.axe.run({include: [['body']], exclude: [['.plot .value']]},
        {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})).violations);
    assert.deepEqual(violations.map((one) => [one.id, one.nodes.map((node) => node.html)]), []);
}

/* Nothing of a page sticks out, nor is hidden in a box that scrolls sideways; wide tables of charts may. */
async function fits(page) {
    const overflow = await page.evaluate(() => Math.max(
        document.documentElement.scrollWidth - window.innerWidth,
        ...[...document.querySelectorAll('.cards, .listing')].map((one) => one.scrollWidth - one.clientWidth),
        ...[...document.querySelectorAll('main :is(select, svg, p, button)')].filter((part) => part.closest('.project-table') === null).map(
            (part) => part.getBoundingClientRect().right - window.innerWidth)));
    assert.ok(overflow <= 0, `${overflow} pixels stick out`);
}

/* What a reader sees of a page of charts: its texts, and how many marks of each kind are drawn; lines in the colours of their marks. */
const KINDS = ['line', 'mark', 'hollow', 'band', 'change', 'span', 'condition', 'bar', 'ceiling'];
const seen = (page) => page.evaluate((kinds) => [document.querySelector('main').innerText, ...[...document.querySelectorAll('svg.plot')].map((plot) => [
    ...kinds.map((kind) => `${plot.querySelectorAll(`.${kind} > *`).length} ${kind}`).filter((text) => !text.startsWith('0 ')),
    ...[...plot.querySelectorAll(':is(.change, .span, .condition) title')].map((title) => title.textContent),
    new Set([...plot.querySelectorAll('.line path')].map((line) => getComputedStyle(line).stroke)).symmetricDifference(
        new Set([...plot.querySelectorAll('.mark path')].map((mark) => getComputedStyle(mark).fill).filter((fill) => fill !== 'rgb(255, 255, 255)'))
    ).size > 0 && plot.querySelector('.line') ? 'other colours' : '',
].filter(Boolean).join(', '))].join('\n'), KINDS);

module.exports = {known: JSON.parse(process.env.KNOWN), here, visit, go, drawn, accessible, fits, seen};
