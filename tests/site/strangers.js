// The site of a stranger's repository, every page: SITE is its folder, KNOWN what is told of it.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { known, here, visit, go } = require('./check.js');
const { PROJECT_PAGES } = require('./pages.js');

const {kernel, commit, subject, foreign} = known;

/* What a page must say: of times nothing, as there was no GPU; the commit that spoiled the kernel, and that it did. */
const MORE = new RegExp(`${kernel}`);
const TOLD = {
    index: MORE, commit: MORE, commits: new RegExp(subject), transactions: new RegExp(kernel),
    history: new RegExp(`${kernel}[^]*machine code changed`), bandwidth: /need a GPU/,
};

for (const [name, [address]] of Object.entries(PROJECT_PAGES)) {
    test(`${name} says what is known`, () => visit(async function (page) {
        await go(page, here.site + address.replace(/(?<=commit\.html#).*/, commit));
        assert.match(await page.locator('body').innerText(), TOLD[name]);
        assert.doesNotMatch(await page.content(), new RegExp(foreign));
    }));
}
