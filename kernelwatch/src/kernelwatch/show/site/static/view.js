// What the project's pages share: showing and hiding, notices, figures and tables. Names come from results, which may come
// from elsewhere: they are only ever set as text.
'use strict';

(function (coalescing) {
    function element(name, properties, ...children) {
        const made = Object.assign(document.createElement(name), properties);
        made.append(...children);
        return made;
    }

    // Pages begin below the navigation, which is as high as its entries need.
    const navigation = document.getElementById('nav');
    new ResizeObserver(() => document.documentElement.style.setProperty(
        '--navigation', `${navigation.offsetHeight}px`)).observe(navigation);

    const redraws = [];
    let waiting = null;

    window.addEventListener('resize', function (event) {
        clearTimeout(waiting);
        waiting = setTimeout(() => redraws.forEach((redraw) => redraw()), 150);
        // asv's one handler draws its graph anew, even where it is hidden: flot refuses that with an exception.
        if ($('#graph-display').is(':hidden')) {
            event.stopImmediatePropagation();
        }
    }, true);

    /* Register a page with asv: `render(index, params, content)` fills the emptied page, and may take its time. */
    function register(name, title, render) {
        const display = document.getElementById(name + '-display');
        let shown = null;

        async function fill(params) {
            const index = await coalescing.data.index();
            if (shown !== params) {
                return;
            }
            const content = element('div', {});
            display.style.minHeight = display.offsetHeight + 'px'; // keeps the place while pieces are loaded
            display.replaceChildren(element('h1', {textContent: title}), content);
            await render(index, params, content);
            if (content.isConnected) {
                display.style.minHeight = '';
                restoreFocus();
            }
        }

        /* asv's pages have the navigation's last entry for their title; this project's have a heading. */
        const announce = () => document.body.classList.toggle(
            'project-page-shown', document.querySelector('.project-page:not([hidden])') !== null);

        function leave() {
            // asv hides its own pages when another is shown, but knows nothing of this one.
            if ($.asv.parse_hash_string(window.location.hash).location.join('/') !== name) {
                shown = null;
                display.hidden = true;
            }
            announce();
        }

        $.asv.register_page(name, function (params) {
            shown = params;
            display.hidden = false;
            announce();
            $('#title').text(title);
            fill(params);
        });
        $(window).on('hashchange', leave);
        redraws.push(() => shown !== null && fill(shown));
    }

    /* The control that was used last: the page is made anew, and the keyboard should stay where it was. */
    let focus = null;

    function keepFocus(id) {
        focus = id;
    }

    function restoreFocus() {
        const control = focus === null ? null : document.getElementById(focus);
        if (control !== null) {
            control.focus();
        }
        focus = null;
    }

    function paragraph(display, text) {
        display.append(element('p', {}, ...coalescing.glossary.explained(text)));
    }

    /* Something that the reader should not overlook. */
    function notice(display, text) {
        display.append(element('p', {className: 'project-notice', role: 'status', textContent: text}));
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
        const body = element('tbody', {});
        rows.forEach(function (cells) {
            body.append(element('tr', {}, ...cells.map((cell, column) => element(
                'td', {className: classes[column]}, ...breakable(cell === null ? '–' : String(cell))))));
        });
        const made = element(
            'table', {}, element('caption', {textContent: caption}), element('thead', {}, head), body);
        return element('div', {className: 'project-table', tabIndex: 0, role: 'region', ariaLabel: caption}, made);
    }

    /* A heading, a chart and its table beside it; `draw(container)` is called once the container has its width. */
    function figure(display, title, note, draw, dataTable) {
        const chart = element('div', {className: 'project-chart'});
        display.append(element(
            'section', {},
            element('h2', {textContent: title}),
            element('p', {}, ...coalescing.glossary.explained(note)),
            element('div', {className: 'project-figure'}, chart, dataTable)));
        draw(chart);
        chart.append(coalescing.downloads(title, chart, dataTable));
    }

    coalescing.view = {element, breakable, register, keepFocus, paragraph, notice, table, figure};
})(window.coalescing);
