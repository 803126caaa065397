// Shared parts of the pages with charts: drawing, notices, figures and tables. Names come from results, perhaps of other people:
// they are set as text only.
'use strict';

function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
}

/* Fill the page by `render(chosen, display)`, an asynchronous function: now, and whenever its choices or its width change. */
function page(render) {
    const content = document.getElementById('content');
    let turn = 0;
    let waiting = null;
    let width = window.innerWidth; // scrolling on a phone changes the height only

    async function fill() {
        const mine = turn += 1;
        const focused = document.activeElement.id;
        const display = element('div', {});
        content.style.minHeight = `${content.offsetHeight}px`; // keeps the scroll position while pieces are loaded
        content.replaceChildren(display);
        try {
            await render(choices(display), display);
        } catch (error) {
            notice(display, `A part of this page could not be loaded: ${error.message}`);
            console.error(error);
        }
        if (mine === turn) {
            document.documentElement.dataset.drawn = turn;
            content.style.minHeight = '';
            (document.getElementById(focused) || document.body).focus(); // the control that was used last
        }
    }

    window.addEventListener('resize', function () {
        clearTimeout(waiting);
        waiting = setTimeout(() => width !== (width = window.innerWidth) && fill(), 150);
    });
    window.addEventListener('hashchange', fill);
    window.addEventListener('DOMContentLoaded', fill);
}

const paragraph = (display, text) => display.append(element('p', {textContent: text}));

/* A notice that stands out. */
const notice = (display, text) => display.append(element('p', {className: 'notice', role: 'status', textContent: text}));

/* Add a notice if several GPUs took the times. */
function noticeGpus(display, index, found) {
    const several = [...new Set(found)];
    if (several.length > 1) {
        const percent = +(100 * index.another_gpu).toPrecision(3);
        notice(display, `Several GPUs of the kind took these times: ${several.join(', ')}. Between two of them, unless they ` +
            `prove alike, the review calls no difference of up to ${percent} % a change.`);
    }
}

/* Two digits or more, no more than needed. */
const digits = (value) => value === null ? null : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);

/* Names of kernels are long: a line may end after an underscore. */
const breakable = (text) => text.split('_').flatMap((part, at) => at === 0 ? [part] : ['_', element('wbr', {}), part]);

/* A table in a box that scrolls. A column of numbers is aligned to the right; a cell is an element, or text in any case. */
function table(caption, headers, rows) {
    const classes = headers.map(
        (_, column) => rows.every((cells) => cells[column] === null || /^[\d.]+$/.test(cells[column])) ? 'number' : '');
    const row = (tag, cells, properties) => element('tr', {}, ...cells.map((cell, column) => element(
        tag, {className: classes[column], ...properties}, ...cell instanceof Element ? [cell] : breakable(cell === null ? '–' : String(cell)))));
    return element('div', {className: 'project-table', tabIndex: 0, role: 'region', ariaLabel: caption}, element(
        'table', {}, element('caption', {textContent: caption}), element('thead', {}, row('th', headers, {scope: 'col'})),
        element('tbody', {}, ...rows.map((cells) => row('td', cells)))));
}

/* Width of a page, in pixels, up to which only the first figure is open. */
const NARROW = 600;

/* A heading, a chart and its table; `draw(container)` runs once the container has its width. On a phone, all but the first figure are
   folded: together they are thirty screens high. */
function figure(display, title, note, draw, made) {
    const chart = element('div', {className: 'project-chart'});
    const heading = element('h2', {textContent: title});
    const parts = [element('p', {textContent: note}), element('div', {className: 'project-figure'}, chart, made)];
    if (window.innerWidth > NARROW || display.querySelector('.project-chart') === null) {
        display.append(element('section', {}, heading, ...parts));
        draw(chart);
    } else {
        const folded = element('details', {className: 'folded'}, element('summary', {}, heading), ...parts);
        folded.addEventListener('toggle', () => draw(chart), {once: true});
        display.append(folded);
    }
}
