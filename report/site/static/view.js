// What the project's pages share: showing and hiding, choices that live in the address, tables. Names come from
// results, which may come from elsewhere: they are only ever set as text.
'use strict';

(function (coalescing) {
    function element(name, properties, ...children) {
        const made = Object.assign(document.createElement(name), properties);
        made.append(...children);
        return made;
    }

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

    /* Register a page with asv: `render(data, params, display)` fills the page's emptied display. */
    function register(name, title, render) {
        const display = document.getElementById(name + '-display');
        let shown = null;

        function fill(params) {
            coalescing.data.load().done(function (data) {
                display.style.paddingTop = document.getElementById('nav').offsetHeight + 'px';
                display.replaceChildren(element('h1', {textContent: title}));
                render(data, params, display);
            }).fail(() => $.asv.ui.network_error());
        }

        /* On a phone, this project's pages are as wide as the screen; asv's need more. */
        function announce() {
            const here = document.querySelector('.project-page:not([hidden])') !== null;
            document.body.classList.toggle('project-page-shown', here);
            document.querySelector('meta[name=viewport]').content =
                here ? 'width=device-width, initial-scale=1' : 'width=980';
        }

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

    /* A choice's value: that of the address if it is one of the options, else the default. A value in the address that
       is no option is told of. */
    function chosen(params, key, options, otherwise, display, what) {
        const asked = params[key] === undefined ? null : params[key][0];
        const found = options.find((option) => option.value === asked);
        if (found !== undefined) {
            return found.value;
        }
        if (asked !== null) {
            display.append(element('p', {
                className: 'project-notice',
                role: 'status',
                textContent: `No ${what} ${asked} here; shown is ${otherwise}.`,
            }));
        }
        return otherwise;
    }

    /* The controls: changing one changes the address, which shows the page anew. */
    function controls(page, fields) {
        const form = element('form', {className: 'project-controls'});
        const state = {};
        fields.forEach(function (field) {
            state[field.key] = [field.value];
            const select = element('select', {name: field.key, id: `${page}-${field.key}`});
            field.options.forEach(function (option) {
                select.append(element('option', {
                    value: option.value, textContent: option.label, selected: option.value === field.value,
                }));
            });
            select.addEventListener('change', function () {
                state[field.key] = [select.value];
                focus = select.id;
                window.location.hash = $.asv.format_hash_string({location: [page], params: state});
            });
            form.append(element('label', {htmlFor: select.id}, element('span', {textContent: field.label}), select));
        });
        form.addEventListener('submit', (event) => event.preventDefault());
        return form;
    }

    /* The control that was used last: the page is made anew, and the keyboard should stay where it was. */
    let focus = null;

    function restoreFocus() {
        const control = focus === null ? null : document.getElementById(focus);
        if (control !== null) {
            control.focus();
        }
        focus = null;
    }

    /* A table in a box that scrolls. A column of numbers is aligned to the right; a cell is text in any case. */
    function table(caption, headers, rows) {
        const classes = headers.map(
            (_, column) => rows.every((cells) => cells[column] === null || /^[\d.]+$/.test(cells[column])) ? 'number' : '');
        const head = element('tr', {}, ...headers.map(
            (text, column) => element('th', {scope: 'col', textContent: text, className: classes[column]})));
        const body = element('tbody', {});
        rows.forEach(function (cells) {
            body.append(element('tr', {}, ...cells.map((cell, column) => element(
                'td', {textContent: cell === null ? '–' : String(cell), className: classes[column]}))));
        });
        const made = element(
            'table', {}, element('caption', {textContent: caption}), element('thead', {}, head), body);
        const box = element('div', {className: 'project-table', tabIndex: 0, role: 'region', ariaLabel: caption}, made);
        return box;
    }

    /* A heading, a chart and its table beside it; `draw(container)` is called once the container has its width. */
    function figure(display, title, note, draw, dataTable) {
        const chart = element('div', {className: 'project-chart'});
        display.append(element(
            'section', {},
            element('h2', {textContent: title}),
            element('p', {textContent: note}),
            element('div', {className: 'project-figure'}, chart, dataTable)));
        draw(chart);
    }

    /* Options of the machines with a value of one of the benchmarks, and of such commits of one machine. */
    function machines(data, benchmarks) {
        return Object.keys(data.machines)
            .filter((name) => data.machines[name].some((commit) => coalescing.data.has(commit, benchmarks)))
            .map((name) => ({value: name, label: name}));
    }

    function commits(data, machine, benchmarks) {
        return data.machines[machine]
            .filter((commit) => coalescing.data.has(commit, benchmarks))
            .map(function (commit) {
                const hash = commit.commit.slice(0, 8);
                return {value: hash, label: `${hash}, ${new Date(commit.date).toISOString().slice(0, 10)}`, commit};
            })
            .reverse();
    }

    coalescing.view = {element, register, chosen, controls, restoreFocus, table, figure, machines, commits};
})(window.coalescing);
