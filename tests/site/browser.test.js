// The published site in a real browser without network. Run by test_browser.py, which says in the environment:
// SITE and HOSTILE_SITE (published folders), CHROMIUM, KNOWN (what the stored results say, as JSON), SCREENSHOTS (a
// folder; without it none are kept).
'use strict';

const assert = require('node:assert/strict');
const fs = require('fs');
const path = require('path');
const { after, before, test } = require('node:test');
const { launch, open, serve } = require('./server.js');

const known = JSON.parse(process.env.KNOWN);
const AXE = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf-8');
const PROJECT_PAGES = ['bandwidth', 'transactions'];
const PHONE = {viewport: {width: 375, height: 740}, deviceScaleFactor: 2, isMobile: true, hasTouch: true};

let browser;
let server;
let hostile;
let site;

before(async function () {
    browser = await launch();
    server = await serve(process.env.SITE);
    hostile = await serve(process.env.HOSTILE_SITE);
    site = `http://127.0.0.1:${server.address().port}/`;
});

after(async function () {
    await browser.close();
    server.close();
    hostile.close();
});

async function shot(page, name, fullPage) {
    if (process.env.SCREENSHOTS) {
        await page.screenshot({path: path.join(process.env.SCREENSHOTS, `${name}.png`), fullPage});
    }
}

async function settled(page) {
    await page.waitForLoadState('networkidle');
    await page.waitForTimeout(200); // asv draws its graphs in timeouts
}

/* No violation of WCAG 2 (A, AA) in the project's own page that is shown. */
async function accessible(page) {
    await page.evaluate(AXE);
    const {violations} = await page.evaluate(() => window.axe.run(
        '.project-page:not([hidden])', {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}));
    assert.deepEqual(violations.map((one) => [one.id, one.nodes.map((node) => node.html)]), []);
}

/* The page's tables hold these rows. */
async function hasRows(page, name, wanted) {
    const rows = await page.locator(`#${name}-display tbody tr`).evaluateAll(
        (found) => found.map((one) => [...one.cells].map((cell) => cell.textContent)));
    for (const cells of wanted) {
        const alike = rows.filter((one) => one[0] === cells[0] && one.length === cells.length);
        assert.ok(alike.some((one) => one.join() === cells.join()), `${cells} is not among\n${alike.join('\n')}`);
    }
}

for (const [name, address, expected] of [
    ['grid', '#/', '#summarygrid-display .benchmark-container'],
    ['list', '#summarylist', '#summarylist-body td'],
    ['regressions', '#regressions', '#regressions-body'],
    ['graph', `#${known.benchmark}`, '#main-graph canvas'],
    ['bandwidth', '#bandwidth', '#bandwidth-display .project-chart svg'],
    ['transactions', '#transactions', '#transactions-display .project-chart svg'],
]) {
    test(`${name} renders without an error or a failed request`, async function () {
        const {page, problems} = await open(browser);
        await page.goto(site + address);
        await page.locator(expected).first().waitFor();
        await settled(page);
        await shot(page, name, PROJECT_PAGES.includes(name));
        if (PROJECT_PAGES.includes(name)) {
            await accessible(page);
        }
        assert.deepEqual(problems, []);
        await page.context().close();
    });
}

for (const name of PROJECT_PAGES) {
    for (const [theme, options] of [['dark', {colorScheme: 'dark'}], ['phone', PHONE]]) {
        test(`${name}, ${theme}: nothing sticks out, the theme is followed`, async function () {
            const {page, problems} = await open(browser, options);
            await page.goto(`${site}#${name}`);
            await page.locator(`#${name}-display .project-chart svg`).first().waitFor();
            await settled(page);
            await shot(page, `${name}-${theme}`, true);
            await accessible(page);
            const [overflow, background] = await page.evaluate((id) => [
                document.documentElement.scrollWidth - window.innerWidth,
                getComputedStyle(document.getElementById(id)).backgroundColor,
            ], `${name}-display`);
            assert.ok(overflow <= 0, `${overflow} pixels stick out`);
            assert.equal(await page.evaluate(() => window.innerWidth), theme === 'phone' ? 375 : 1300);
            assert.equal(background, theme === 'dark' ? 'rgb(22, 24, 27)' : 'rgb(255, 255, 255)');
            assert.deepEqual(problems, []);
            await page.context().close();
        });
    }
}

test('tabs switch, the back button too, and one page is shown at a time', async function () {
    const {page, problems} = await open(browser);
    await page.goto(site);
    const displays = {
        '': 'summarygrid', summarylist: 'summarylist', regressions: 'regressions', bandwidth: 'bandwidth',
        transactions: 'transactions',
    };
    async function only(name) {
        // By their style: asv's list has no height of its own, so that Playwright takes it for hidden.
        const shown = () => page.evaluate((names) => names.filter(
            (one) => getComputedStyle(document.getElementById(`${one}-display`)).display !== 'none'), Object.values(displays));
        await page.waitForFunction(
            (one) => getComputedStyle(document.getElementById(one)).display !== 'none', `${displays[name]}-display`);
        assert.deepEqual(await shown(), [displays[name]]);
        assert.equal(await page.locator('#nav li.active').getAttribute('id'), `nav-li-${name}`);
    }
    for (const name of ['bandwidth', 'summarylist', 'transactions', 'bandwidth', 'regressions', 'transactions', '']) {
        await page.locator(`[id="nav-li-${name}"] a`).click();
        await only(name);
    }
    await page.goBack();
    await only('transactions');
    assert.deepEqual(problems, []);
    await page.context().close();
});

test('charts follow the width of the window, and a hidden graph does not', async function () {
    const {page, problems} = await open(browser);
    await page.goto(`${site}#${known.benchmark}`);
    await page.locator('#main-graph canvas').first().waitFor();
    await page.goto(`${site}#bandwidth`);
    const svg = page.locator('#bandwidth-display svg').first();
    const before = await svg.getAttribute('width');
    await page.setViewportSize({width: 500, height: 700});
    await page.waitForFunction(
        (width) => document.querySelector('#bandwidth-display svg').getAttribute('width') < width, before);
    await page.goto(`${site}#regressions`);
    await page.setViewportSize({width: 1000, height: 700});
    await settled(page);
    assert.deepEqual(problems, []);
    await page.context().close();
});

test('the navigation stays on its line, above what asv shows', async function () {
    for (const width of [1300, 980, 860]) {
        const {page} = await open(browser, {viewport: {width, height: 700}});
        for (const address of ['#summarylist', '#track_counted.Transpose.track_bank_conflicts']) {
            await page.goto(site + address);
            await page.locator('#nav li.active').waitFor();
            assert.ok(await page.evaluate(() => document.getElementById('nav').offsetHeight) <= 55, `${width} ${address}`);
        }
        await page.context().close();
    }
});

test('what the results say is in the tables and on the charts', async function () {
    const {page} = await open(browser);
    await page.goto(`${site}#bandwidth?machine=${known.machine}&commit=${known.commit}`);
    await page.locator('#bandwidth-display table').first().waitFor();
    await hasRows(page, 'bandwidth', known.bandwidth_rows);
    const titles = await page.locator('#bandwidth-display svg title').allTextContents();
    for (const wanted of known.bandwidth_titles) {
        assert.ok(titles.includes(wanted), wanted);
    }
    await page.goto(`${site}#transactions`);
    await page.locator('#transactions-display table').first().waitFor();
    await hasRows(page, 'transactions', known.transactions_rows);
    assert.ok((await page.locator('#transactions-display pre .costly').allTextContents()).some(
        (line) => line.includes('tile[threadIdx.x][threadIdx.y]')));
    await page.context().close();
});

test('choices go into the address, and the address survives a reload', async function () {
    const {page, problems} = await open(browser);
    await page.goto(`${site}#bandwidth`);
    await page.locator('#bandwidth-dtype').selectOption('float64');
    await page.waitForFunction(() => window.location.hash.includes('dtype=float64'));
    await page.locator('#bandwidth-commit').selectOption(known.older_commit);
    await page.waitForFunction((hash) => window.location.hash.includes(hash), known.older_commit);
    await page.waitForFunction(() => document.activeElement.id === 'bandwidth-commit');
    const address = page.url();
    for (const key of ['machine', 'commit', 'with', 'flags', 'size', 'dtype']) {
        assert.match(address, new RegExp(`[?&]${key}=`));
    }
    const text = () => page.locator('#bandwidth-display').innerText();
    const before = await text();
    assert.match(before, /Transposes of 12800x12800, float64/);
    await page.reload();
    await page.locator('#bandwidth-display table').first().waitFor();
    assert.equal(page.url(), address);
    assert.equal(await text(), before);
    await page.goto(`${site}#bandwidth?machine=nowhere`);
    await page.getByText('No times of machine nowhere here').waitFor();
    assert.deepEqual(problems, []);
    await page.context().close();
});

test('a commit is laid over another', async function () {
    const {page, problems} = await open(browser);
    await page.goto(`${site}#bandwidth?commit=${known.commit}&with=${known.older_commit}`);
    await page.locator('#bandwidth-display table').first().waitFor();
    await hasRows(page, 'bandwidth', [known.compared_row]);
    assert.ok(await page.locator('#bandwidth-display svg .before').count() > 0);
    await shot(page, 'bandwidth-compared', true);
    assert.deepEqual(problems, []);
    await page.context().close();
});

test('the policy stops other hosts and scripts in the page', async function () {
    const {page} = await open(browser);
    await page.goto(`${site}#bandwidth`);
    const [fetched, ran] = await page.evaluate(async function () {
        const violations = [];
        document.addEventListener('securitypolicyviolation', (event) => violations.push(event.effectiveDirective));
        await fetch('https://example.org/').catch(() => null);
        const script = document.createElement('script');
        script.textContent = 'window.ran = true';
        document.body.append(script);
        await new Promise((resolve) => setTimeout(resolve, 100)); // violations are told of later
        return [violations, window.ran === true];
    });
    assert.deepEqual([...fetched].sort(), ['connect-src', 'script-src-elem']);
    assert.equal(ran, false);
    await page.context().close();
});

test('a hostile machine name stays text', async function () {
    const address = `http://127.0.0.1:${hostile.address().port}/`;
    const {page} = await open(browser);
    for (const hash of [
        ...PROJECT_PAGES.map((name) => `#${name}?machine=${encodeURIComponent(known.hostile)}`),
        `#bandwidth?machine=${encodeURIComponent('<img src=x onerror="window.attacked=1">')}`,
        '#/', '#summarylist', '#regressions', `#${known.benchmark}`,
    ]) {
        await page.goto(address + hash);
        await settled(page);
        assert.equal(await page.evaluate(() => window.attacked), undefined, hash);
        assert.equal(await page.locator('.project-page img').count(), 0, hash);
    }
    await page.goto(`${address}#bandwidth?machine=${encodeURIComponent(known.hostile)}`);
    assert.equal(await page.locator('#bandwidth-machine').inputValue(), known.hostile);
    await page.context().close();
});

test('without one of its scripts the site says so', async function () {
    const {page} = await open(browser);
    await page.route('**/jquery.min.js', (route) => route.abort());
    await page.goto(site);
    await page.waitForURL('**/error.html');
    await page.context().close();
});
