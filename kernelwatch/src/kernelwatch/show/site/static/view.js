// What the pages of charts share: showing and hiding, notices, figures and tables. Names come from results, which may come
// from elsewhere: they are only ever set as text.
'use strict';

(function (coalescing) {
    function element(name, properties, ...children) {
        const made = Object.assign(document.createElement(name), properties);
        made.append(...children);
        return made;
    }

    /* Have a page filled by `render(params, display)`, which may take its time: the choices are behind the address's "#". */
    function page(render) {
        const content = document.getElementById('content');
        let turn = 0;
        let waiting = null;

        async function fill() {
            const mine = turn += 1;
            const focused = document.activeElement.id;
            const display = element('div', {});
            content.style.minHeight = `${content.offsetHeight}px`; // keeps the place while pieces are loaded
            content.replaceChildren(display);
            try {
                await render(Object.fromEntries(new URLSearchParams(window.location.hash.slice(1))), display);
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

        let width = window.innerWidth; // a phone hides its bar as one scrolls: that is no other width
        window.addEventListener('resize', function () {
            clearTimeout(waiting);
            waiting = setTimeout(() => width !== (width = window.innerWidth) && fill(), 150);
        });
        window.addEventListener('hashchange', fill);
        window.addEventListener('DOMContentLoaded', fill);
    }

    function paragraph(display, text) {
        display.append(element('p', {}, ...coalescing.glossary.explained(text)));
    }

    /* Something that the reader should not overlook. */
    function notice(display, text) {
        display.append(element('p', {className: 'notice', role: 'status', textContent: text}));
    }

    /* Names of kernels are long: a line may end after an underscore. */
    const breakable = (text) => text.split('_').flatMap((part, at) => at === 0 ? [part] : ['_', element('wbr', {}), part]);

    /* A table in a box that scrolls. A column of numbers is aligned to the right; a cell is text in any case. */
    function table(caption, headers, rows) {
        const classes = headers.map(
            (_, column) => rows.every((cells) => cells[column] === null || /^[\d.]+$/.test(cells[column])) ? 'number' : '');
        const head = element('tr', {}, ...headers.map(
            (text, column) => element(
                'th', {scope: 'col', className: classes[column]}, ...coalescing.glossary.explained(text).flatMap(
                    (part) => typeof part === 'string' ? breakable(part) : [part]))));
        const body = element('tbody', {}, ...rows.map((cells) => element('tr', {}, ...cells.map((cell, column) => element(
            'td', {className: classes[column]}, ...breakable(cell === null ? '–' : String(cell)))))));
        const made = element(
            'table', {}, element('caption', {textContent: caption}), element('thead', {}, head), body);
        return element('div', {className: 'project-table', tabIndex: 0, role: 'region', ariaLabel: caption}, made);
    }

    /* A heading, a chart and its table beside it; `draw(container)` is called once the container has its width. */
    function figure(display, title, note, draw, dataTable) {
        const chart = element('div', {className: 'project-chart'});
        section(display, title, element('p', {}, ...coalescing.glossary.explained(note)),
            element('div', {className: 'project-figure'}, chart, dataTable));
        draw(chart);
        chart.append(coalescing.downloads(title, chart, dataTable));
    }

    /* A heading, and what stands under it. */
    function section(display, title, ...parts) {
        display.append(element('section', {}, element('h2', {textContent: title}), ...parts));
    }

    /* A heading, a text, and a table that the reader opens. */
    function folded(display, title, text, dataTable) {
        section(display, title, element('p', {textContent: text}), element(
            'details', {}, element('summary', {textContent: 'The values'}), dataTable, coalescing.downloads(title, null, dataTable)));
    }

    coalescing.view = {element, page, paragraph, notice, table, figure, section, folded};
})(window.coalescing = window.coalescing || {});
