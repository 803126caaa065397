// Functions for all pages: redrawing, notices, figures and tables. Names come from results, perhaps of other people, so they are set
// as text only.
'use strict';

/** Maximum width of a page, in pixels, at which only the first figure is open. */
const NARROW = 600;

/** Make an element with properties and children.
 * @type {(name: string, properties: object, ...children: (Node | string)[]) => HTMLElement} */
function makeElement(name, properties, ...children) {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
}

/** Let `render` fill the page when it is loaded, and whenever its choices or its width change.
 * @type {(render: (choices: Choices, display: HTMLElement) => ?Promise) => void} */
function runPage(render) {
    const content = document.getElementById('content');
    let turn = 0;
    let timer = null;
    let width = window.innerWidth; // scrolling on a phone changes the height only

    async function fillPage() {
        const ownTurn = turn += 1;
        const focused = document.activeElement.id;
        const display = makeElement('div', {});
        content.style.minHeight = `${content.offsetHeight}px`; // keeps the scroll position while pieces are loaded
        content.replaceChildren(display);
        try {
            await render(makeChoices(display), display);
        } catch (error) {
            addNotice(display, `A part of this page could not be loaded: ${error.message}`);
            console.error(error);
        }
        if (ownTurn === turn) {
            document.documentElement.dataset.drawn = turn;
            content.style.minHeight = '';
            (document.getElementById(focused) || document.body).focus(); // the control that was used last
        }
    }

    window.addEventListener('resize', function () {
        clearTimeout(timer);
        timer = setTimeout(() => width !== (width = window.innerWidth) && fillPage(), 150);
    });
    window.addEventListener('hashchange', fillPage);
    window.addEventListener('DOMContentLoaded', fillPage);
}

/** Add a paragraph.
 * @type {(display: HTMLElement, text: string) => void} */
const addParagraph = (display, text) => display.append(makeElement('p', {textContent: text}));

/** Add a notice that stands out.
 * @type {(display: HTMLElement, text: string) => void} */
const addNotice = (display, text) => display.append(makeElement('p', {className: 'notice', role: 'status', textContent: text}));

/** Add a notice if several GPUs took the times.
 * @type {(display: HTMLElement, index: Index, gpus: string[]) => void} */
function addGpuNotice(display, index, gpus) {
    const count = new Set(gpus).size;
    if (count > 1) {
        const percent = +(100 * index.another_gpu).toPrecision(3);
        addNotice(display, `${count} GPUs of this kind measured these times. The review calls differences of up to ${percent} % between ` +
            'two of them the same, unless controls show that the two agree better.');
    }
}

/** Format a number with at most two decimals; large numbers have fewer.
 * @type {(value: ?number) => ?string} */
const formatNumber = (value) => value === null ? null : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);

/** Return the nodes of a name in which lines may break after each underscore, because names of kernels are long.
 * @type {(text: string) => (Node | string)[]} */
const breakName = (text) => text.split('_').flatMap((part, place) => place === 0 ? [part] : ['_', makeElement('wbr', {}), part]);

/** Make a table in a scrolling box; null cells are shown as dashes. Columns of numbers are aligned to the right.
 * @type {(caption: string, headers: string[], rows: (Element | string | number | null)[][]) => HTMLElement} */
function makeTable(caption, headers, rows) {
    const classes = headers.map(
        (_, column) => rows.every((cells) => cells[column] === null || /^[\d.]+(, as at \w+)?$/.test(cells[column])) ? 'number' : '');
    const makeRow = (tag, cells, properties) => makeElement('tr', {}, ...cells.map((cell, column) => makeElement(
        tag, {className: classes[column], ...properties}, ...cell instanceof Element ? [cell] : breakName(cell === null ? '–' : String(cell)))));
    return makeElement('div', {className: 'project-table', tabIndex: 0, role: 'region', ariaLabel: caption}, makeElement(
        'table', {}, makeElement('caption', {textContent: caption}), makeElement('thead', {}, makeRow('th', headers, {scope: 'col'})),
        makeElement('tbody', {}, ...rows.map((cells) => makeRow('td', cells)))));
}

/** Add a figure: a heading, a note, a chart and its table. `draw` gets the chart's container once this has a width. On a narrow page,
 * all figures but the first are folded.
 * @type {(display: HTMLElement, title: string, note: string, draw: (container: HTMLElement) => void, table: HTMLElement) => void} */
function addFigure(display, title, note, draw, table) {
    const chart = makeElement('div', {className: 'project-chart'});
    const heading = makeElement('h2', {textContent: title});
    const parts = [makeElement('p', {textContent: note}), makeElement('div', {className: 'project-figure'}, chart, table)];
    if (window.innerWidth > NARROW || display.querySelector('.project-chart') === null) {
        display.append(makeElement('section', {}, heading, ...parts));
        draw(chart);
    } else {
        const folded = makeElement('details', {className: 'folded'}, makeElement('summary', {}, heading), ...parts);
        folded.addEventListener('toggle', () => draw(chart), {once: true});
        display.append(folded);
    }
}
