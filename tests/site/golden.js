// What a reader sees of some pages of charts, as JSON by their addresses: their texts, and how many marks of each kind are drawn.
'use strict';

const { launch, open, serve } = require('./server.js');

const KINDS = ['line', 'mark', 'hollow', 'dashed', 'change', 'bar', 'before', 'ceiling', 'boundary'];

/* Of the page: the colour of a line is that of its marks, and is left out. */
const seen = (kinds) => [document.querySelector('main').innerText, ...[...document.querySelectorAll('svg.plot')].map((plot) => [
    ...kinds.map((kind) => `${plot.querySelectorAll(`.${kind} > *`).length} ${kind}`).filter((text) => !text.startsWith('0 ')),
    ...[...plot.querySelectorAll('.change title')].map((title) => title.textContent),
    new Set([...plot.querySelectorAll('.line path')].map((line) => getComputedStyle(line).stroke)).symmetricDifference(
        new Set([...plot.querySelectorAll('.mark path')].map((mark) => getComputedStyle(mark).fill).filter((fill) => fill !== 'rgb(255, 255, 255)'))
    ).size > 0 && plot.querySelector('.line') ? 'other colours' : '',
].filter(Boolean).join(', '))].join('\n');

(async function () {
    const [browser, server] = [await launch(), await serve(process.env.SITE)];
    const {page, problems} = await open(browser, {viewport: {width: 1300, height: 900}});
    const found = {};
    for (const address of JSON.parse(process.env.ADDRESSES)) {
        await page.goto('about:blank');
        await page.goto(`http://127.0.0.1:${server.address().port}/${address}`);
        await page.waitForFunction(() => Number(document.documentElement.dataset.drawn) > 0);
        found[address] = [await page.evaluate(seen, KINDS), ...problems.splice(0)].join('\n');
    }
    process.stdout.write(JSON.stringify(found));
    await browser.close();
    server.close();
})();
