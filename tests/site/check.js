// What the tests share: the site, served, and a browser; and what they look for on a page. test_browser.py says in the
// environment: SITE (the published folder), CHROMIUM, and KNOWN (what the results say, as JSON).
'use strict';

const assert = require('node:assert/strict');
const fs = require('fs');
const { after, before } = require('node:test');
const { launch, open, serve } = require('./server.js');

const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf-8');

/* Where the site is served. */
const here = {};

let browser, page, problems, server;
before(async function () {
    browser = await launch();
    ({page, problems} = await open(browser));
    server = await serve(process.env.SITE);
    here.site = `http://127.0.0.1:${server.address().port}/`;
});
after(async function () {
    await browser.close();
    server.close();
});

/* Run `look(page, problems)` on a page; nothing may go wrong there but what `look` provokes: then it returns false. One tab serves
   all, one after the other: starting another takes longer than most looks. */
async function visit(look, {width = 1300, colorScheme = 'light'} = {}) {
    await page.goto('about:blank');
    await page.unrouteAll();
    await page.setViewportSize({width, height: 900});
    await page.emulateMedia({colorScheme});
    problems.length = 0;
    if (await look(page, problems) !== false) {
        assert.deepEqual(problems, []);
    }
}

/* Go to an address, and wait until all of the page is there: pages of charts say so. */
async function go(page, address) {
    await page.goto('about:blank');
    await page.goto(address);
    await drawn(page);
}

const drawn = (page, turn = 0) => page.waitForFunction(
    (least) => document.getElementById('content') === null || Number(document.documentElement.dataset.drawn) > least, turn);

/* What is no part of what axe looks at: of tables and sources the first rows tell, and a chart is one picture. */
const MORE = '.project-table tbody tr:nth-child(n+4), .cards tbody tr:nth-child(n+10), ' +
    '.source ~ .source, .listing tr:nth-child(n+20), section ~ section ~ section ~ section ~ section, details li:nth-child(n+4)';

/* No violation of WCAG 2 (A, AA) in a page of the project. */
async function accessible(page) {
    await page.evaluate(AXE);
    const violations = await page.evaluate(async function (more) {
        const hidden = [...document.querySelectorAll(more)].filter((one) => !one.hidden);
        hidden.forEach((one) => { one.hidden = true; });
        const found = await window.axe.run({include: [['body']], exclude: [['.plot']]},
            {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']});
        hidden.forEach((one) => { one.hidden = false; });
        return found.violations;
    }, MORE);
    assert.deepEqual(violations.map((one) => [one.id, one.nodes.map((node) => node.html)]), []);
}

/* The texts of a page's table rows. */
function rows(page) {
    return page.locator('main tbody tr').evaluateAll(
        (found) => found.map((one) => [...one.cells].map((cell) => cell.textContent)));
}

/* Of the rows that begin so, and are so long, one is this one. */
function hasRows(found, wanted) {
    for (const cells of wanted) {
        const alike = found.filter((one) => one[0] === cells[0] && one.length === cells.length);
        assert.ok(alike.some((one) => one.join() === cells.join()), `${cells} is not among\n${alike.join('\n')}`);
    }
}

module.exports = {known: JSON.parse(process.env.KNOWN), here, visit, go, drawn, accessible, rows, hasRows};
