// What a reader takes home of a figure: its table as CSV, its charts as SVG that looks alike without the site's styles.
'use strict';

(function (coalescing) {
    const STYLES = ['fill', 'stroke', 'color', 'font-family', 'font-size', 'stroke-width', 'stroke-dasharray', 'paint-order'];

    function csv(table) {
        const quoted = (cell) => /[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
        return [...table.rows].map((row) => [...row.cells].map(({textContent}) => quoted(
            textContent === '–' ? '' : textContent)).join(',')).join('\n') + '\n';
    }

    function standalone(svg) {
        const copy = svg.cloneNode(true);
        const inside = (one) => [one, ...one.querySelectorAll('*')];
        const shown = inside(svg);
        inside(copy).forEach(function (one, at) {
            const style = getComputedStyle(shown[at]);
            one.setAttribute('style', STYLES.map((name) => `${name}:${style.getPropertyValue(name)}`).join(';'));
        });
        const {backgroundColor} = getComputedStyle(document.body);
        copy.setAttribute('style', `${copy.getAttribute('style')};background:${backgroundColor}`);
        return new XMLSerializer().serializeToString(copy);
    }

    function save(name, type, text) {
        const url = URL.createObjectURL(new Blob([text], {type}));
        coalescing.view.element('a', {href: url, download: name}).click();
        setTimeout(() => URL.revokeObjectURL(url), 1000);
    }

    /* Buttons for a figure's table, and for each of its charts. */
    function downloads(title, chart, table) {
        const name = title.replace(/[^\w.-]+/g, '-').toLowerCase();
        const button = (text, what, onclick) => coalescing.view.element(
            'button', {type: 'button', textContent: text, ariaLabel: `${text} of ${what}`, onclick});
        const charts = chart === null ? [] : [...chart.querySelectorAll('svg.plot')];
        return coalescing.view.element('p', {className: 'project-downloads'},
            button('CSV', title, () => save(`${name}.csv`, 'text/csv', csv(table.querySelector('table')))),
            ...charts.map((svg, at) => button(
                charts.length === 1 ? 'SVG' : `SVG ${at + 1}`, svg.parentNode.ariaLabel,
                () => save(`${name}${at === 0 ? '' : `-${at + 1}`}.svg`, 'image/svg+xml', standalone(svg)))));
    }

    coalescing.downloads = downloads;
})(window.coalescing);
