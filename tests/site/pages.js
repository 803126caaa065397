// Every page: where it is, what is there once it is drawn, and what a phone is.
'use strict';

/* Of each kind of commit page one is enough. */
const PROJECT_PAGES = {
    index: ['index.html', '.overview table'],
    commits: ['commit.html', 'tbody tr'],
    commit: ['commit.html#740a7872', '.lead'],
    bandwidth: ['bandwidth.html', '.project-chart svg.plot'],
    history: ['history.html', '.project-chart svg.plot'],
    transactions: ['transactions.html', '.project-chart svg.plot'],
};

const PHONE = {viewport: {width: 375, height: 740}, deviceScaleFactor: 2, isMobile: true, hasTouch: true};

module.exports = {PROJECT_PAGES, PHONE};
