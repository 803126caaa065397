// What the tests share: the sites, served, and a browser; and what they look for on a page. test_browser.py says in the
// environment: SITE, BARE_SITE and HOSTILE_SITE (published folders), CHROMIUM, and KNOWN (what the results say, as JSON).
'use strict';

const assert = require('node:assert/strict');
const fs = require('fs');
const { after, before } = require('node:test');
const { launch, open, serve } = require('./server.js');

const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf-8');

/* Before a file's tests, serve folders and start a browser; `sites` holds the addresses by name. */
function setup(folders) {
    const here = {sites: {}};
    let browser, page, problems;
    const servers = [];
    before(async function () {
        browser = await launch();
        ({page, problems} = await open(browser));
        for (const [name, folder] of Object.entries(folders)) {
            servers.push(await serve(folder));
            here.sites[name] = `http://127.0.0.1:${servers.at(-1).address().port}/`;
        }
    });
    after(async function () {
        await browser.close();
        servers.forEach((server) => server.close());
    });

    /* Run `look(page)` on a page; nothing may go wrong there but what `look` provokes: then it returns false. One tab serves
       all, one after the other: starting another takes longer than most looks. */
    here.visit = async function (look, {width = 1300, colorScheme = 'light'} = {}) {
        await page.goto('about:blank');
        await page.unrouteAll();
        await page.setViewportSize({width, height: 900});
        await page.emulateMedia({colorScheme});
        problems.length = 0;
        if (await look(page) !== false) {
            assert.deepEqual(problems, []);
        }
    };
    return here;
}

/* Go to an address, and wait until all of the page is there: pages of charts say so. */
async function go(page, address) {
    await page.goto('about:blank');
    await page.goto(address);
    await drawn(page);
}

const drawn = (page, turn = 0) => page.waitForFunction(
    (least) => document.getElementById('content') === null || Number(document.documentElement.dataset.drawn) > least, turn);

/* No violation of WCAG 2 (A, AA) in a page of the project. Of tables and sources the first rows tell, and a
   chart is one picture: that takes a fraction of the time. */
async function accessible(page) {
    await page.evaluate(AXE);
    const {violations} = await page.evaluate(() => window.axe.run(
        {
            include: [['body']],
            exclude: [['.project-table tbody tr:nth-child(n+4)'], ['.plot'], ['.source ~ .source'], ['pre span']],
        }, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}));
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

module.exports = {known: JSON.parse(process.env.KNOWN), setup, go, drawn, accessible, rows, hasRows};
