// Pictures of every page of a published site: CHROMIUM=/usr/bin/chromium node screenshots.js SITE FOLDER.
'use strict';

const fs = require('fs');
const path = require('path');
const { launch, open, serve } = require('./server.js');
const { PHONE, PROJECT_PAGES } = require('./pages.js');

/* How pages are shown besides: name, what is added to the picture's, and the browser's options. */
const BESIDES = [
    ['index', '-wide', {viewport: {width: 1920, height: 1080}, colorScheme: 'dark'}], ['index', '-phone', PHONE],
    ['bandwidth', '-dark', {colorScheme: 'dark'}], ['bandwidth', '-phone', PHONE],
];

/* Pixels that are shown of a page: the beginning of a long one tells what it is. */
const HIGHEST = 1600;

async function main(site, folder) {
    fs.mkdirSync(folder, {recursive: true});
    const server = await serve(path.resolve(site));
    const browser = await launch();
    const all = Object.entries(PROJECT_PAGES).map(([name, page]) => [name, ...page]);
    const besides = BESIDES.map(([name, ...how]) => [...all.find((one) => one[0] === name), ...how]);
    for (const [name, address, expected, variant = '', options = {}] of [...all, ...besides]) {
        const {page, problems} = await open(browser, options);
        await page.goto(`http://127.0.0.1:${server.address().port}/${address}`);
        await page.locator(expected).first().waitFor();
        await page.waitForLoadState('networkidle');
        const [width, height] = await page.evaluate(
            () => [document.documentElement.clientWidth, document.documentElement.scrollHeight]);
        await page.screenshot({
            path: path.join(folder, `${name}${variant}.png`),
            fullPage: true, clip: {x: 0, y: 0, width, height: Math.min(height, HIGHEST)},
        });
        console.log(`${name}${variant}.png`, ...problems);
        process.exitCode = problems.length > 0 ? 1 : process.exitCode;
        await page.context().close();
    }
    await browser.close();
    server.close();
}

main(...process.argv.slice(2));
