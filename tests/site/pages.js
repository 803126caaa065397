// Every page of the site: where it is, what is there once it is drawn, and what a phone is.
'use strict';

const fs = require('fs');
const path = require('path');

/* Of each kind of commit page one is enough. */
const PROJECT_PAGES = {
    index: ['index.html', '.heat table'],
    regressed: ['regressed.html', 'tbody tr'],
    commits: ['commit.html', 'tbody tr'],
    commit: ['commit.html#740a7872', 'dl.facts'],
    bandwidth: ['bandwidth.html', '.project-chart svg.plot'],
    history: ['history.html', '.project-chart svg.plot'],
    transactions: ['transactions.html', '.project-chart svg.plot'],
    details: ['details.html', '.project-chart svg.plot'],
};

/* Name, address and selector of all pages of a published folder; the graph is that of the first transposes. */
function pages(site) {
    const {benchmarks} = JSON.parse(fs.readFileSync(path.join(site, 'index.json'), 'utf-8'));
    const benchmark = Object.keys(benchmarks).find((name) => name.startsWith('time_transpose.Transpose.time_'));
    return [
        ['grid', 'asv.html#/', '#summarygrid-display .benchmark-container'],
        ['list', 'asv.html#summarylist', '#summarylist-body td'],
        ['regressions', 'asv.html#regressions', '#regressions-body'],
        ['graph', `asv.html#${benchmark}`, '#main-graph canvas'],
        ...Object.entries(PROJECT_PAGES).map(([name, page]) => [name, ...page]),
    ];
}

const PHONE = {viewport: {width: 375, height: 740}, deviceScaleFactor: 2, isMobile: true, hasTouch: true};

async function settled(page) {
    await page.waitForLoadState('networkidle');
    await page.waitForTimeout(200); // asv draws its graphs in timeouts
}

module.exports = {PROJECT_PAGES, PHONE, pages, settled};
