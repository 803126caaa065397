// Milliseconds until a site opened as a file shows a page, the median of several, by page:
// CHROMIUM=/usr/bin/chromium node first_page.js SITE. Each time in a fresh context: nothing is cached but by the disk.
'use strict';

const path = require('path');
const { pathToFileURL } = require('url');
const { launch, open } = require('./server.js');
const { pages } = require('./pages.js');

const TIMES = 5;

/* Those that show times: what is published may hold nothing else. */
const SHOWN = ['grid', 'list', 'graph', 'bandwidth', 'history'];

async function main(site) {
    const browser = await launch();
    const found = {};
    const shown = pages(site).filter(([name]) => SHOWN.includes(name));
    for (const [name, address, expected] of shown) {
        const taken = [];
        for (let time = 0; time < TIMES; time += 1) {
            const {page} = await open(browser, {});
            const start = performance.now();
            await page.goto(pathToFileURL(path.resolve(site)) + '/index.html' + address, {waitUntil: 'commit'});
            await page.locator(expected).first().waitFor();
            taken.push(performance.now() - start);
            await page.context().close();
        }
        found[name] = taken.sort((one, other) => one - other)[Math.floor(TIMES / 2)];
    }
    console.log(JSON.stringify(found));
    await browser.close();
}

main(...process.argv.slice(2));
