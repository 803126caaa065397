// The figure of a sweep: what was measured of some lines, kernels or dtypes, at each of some places, and its table.
'use strict';

(function (coalescing) {
    const {data, view, charts} = coalescing;

    /* What charts draw of a line at some places, {name, key} each: {name, points, beside}, where `beside(point)` is what a value
       is compared with. `measure` has what is shown of a point, `of(point)`, and how the pointer tells it, `told(what, value)`. */
    function line({name, points, beside}, places, measure) {
        const at = places.map(({key}) => data.where(points, key)[0] || null);
        const values = at.map((point) => point && measure.of(point));
        return {
            name, at, values, beside: at.map((point) => point && beside ? beside(point) : null),
            titles: values.map((value, row) => value === null ? null : measure.told(`${places[row].name}, ${name}`, value)),
        };
    }

    /* Those of some lines that have a value anywhere. */
    const drawn = (lines, places, measure) => lines.map((one) => line(one, places, measure)).filter(
        ({values}) => values.some((value) => value !== null));

    /* Draw `kind`, bars or lines, and beside it a table with a row a value. spec: title, note, xTitle, places, lines, measure with
       its unit and axis, headers, the cells of a point and what it is compared with, more rows, and what `charts` knows besides. */
    function sweep(display, kind, {title, note, places, lines, measure, headers, cells, moreRows = [], ...spec}) {
        const series = drawn(lines, places, measure);
        if (series.length === 0) {
            return;
        }
        const row = (one, at, ...names) => one.at[at] === null ? [] : [[...names, ...cells(one.at[at], one.beside[at])]];
        const rows = kind === 'bars'
            ? places.flatMap(({name}, at) => series.flatMap((one) => row(one, at, name, one.name)))
            : series.flatMap((one) => places.flatMap(({name}, at) => row(one, at, one.name, name)));
        view.figure(display, title, note, (chart) => charts[kind](chart, {
            label: `${title}: ${measure.unit} by ${headers[kind === 'bars' ? 0 : 1]}; the table has the values`,
            xTitle: kind === 'bars' ? measure.unit : headers[1],
            yTitle: measure.unit,
            places: places.map(({name}) => name), series, ...measure.axis, ...spec,
        }), view.table(title, headers, [...rows, ...moreRows]));
    }

    coalescing.sweep = Object.assign(sweep, {drawn});
})(window.coalescing);
