// Every page of the site: where it is, what is there once it is drawn, and what a phone is.
'use strict';

const fs = require('fs');
const path = require('path');

const PROJECT_PAGES = {
    overview: '.heat table',
    regressed: 'table',
    commit: 'table',
    bandwidth: '.project-chart svg.plot',
    history: '.project-chart svg.plot',
    transactions: '.project-chart svg.plot',
    resources: '.project-chart svg.plot',
    compilers: 'h1',
    noise: 'h1',
};

/* Name, address and selector of all pages of a published folder; the graph is that of the first transposes. */
function pages(site) {
    const {benchmarks} = JSON.parse(fs.readFileSync(path.join(site, 'index.json'), 'utf-8'));
    const benchmark = Object.keys(benchmarks).find((name) => name.startsWith('time_transpose.Transpose.time_'));
    return [
        ['grid', '#/', '#summarygrid-display .benchmark-container'],
        ['list', '#summarylist', '#summarylist-body td'],
        ['regressions', '#regressions', '#regressions-body'],
        ['graph', `#${benchmark}`, '#main-graph canvas'],
        ...Object.entries(PROJECT_PAGES).map(([name, selector]) => [name, `#${name}`, `#${name}-display ${selector}`]),
    ];
}

const PHONE = {viewport: {width: 375, height: 740}, deviceScaleFactor: 2, isMobile: true, hasTouch: true};

async function settled(page) {
    await page.waitForLoadState('networkidle');
    await page.waitForTimeout(200); // asv draws its graphs in timeouts
}

module.exports = {PROJECT_PAGES: Object.keys(PROJECT_PAGES), PHONE, pages, settled};
