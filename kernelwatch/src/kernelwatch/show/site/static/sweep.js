// The figure of a sweep, with its table: lines are kernels or dtypes, each measured at several places.
'use strict';

/* The series of a chart: lines {name, points} at places {name, key}, without lines that have no value. `measure.of(point)` is the
   shown number, `measure.told(what, value)` its tip. */
function seriesOf(lines, places, measure) {
    return lines.map(function ({name, points}) {
        const at = places.map(({key}) => where(points, key)[0] || null);
        const values = at.map((point) => point && measure.of(point));
        const titles = values.map((value, row) => value === null ? null : measure.told(`${places[row].name}, ${name}`, value));
        return {name, at, values, titles};
    }).filter(({values}) => values.some(isValue));
}

/* Draw `chart`, bars or lines, and a table with a row for each value. spec: title, note, places, lines, measure with its unit and
   axis, headers, the cells of a point, and further options of the chart. */
function sweep(display, chart, {title, note, places, lines: drawn, measure, headers, cells, ...spec}) {
    const series = seriesOf(drawn, places, measure);
    if (series.length === 0) {
        return;
    }
    const row = (one, at, ...names) => one.at[at] === null ? [] : [[...names, ...cells(one.at[at])]];
    const rows = chart === bars
        ? places.flatMap(({name}, at) => series.flatMap((one) => row(one, at, name, ...one.name === measure.unit ? [] : [one.name])))
        : series.flatMap((one) => places.flatMap(({name}, at) => row(one, at, one.name, name)));
    figure(display, title, note, (container) => chart(container, {
        label: `${title}: ${measure.unit} by ${headers[chart === bars ? 0 : 1]}; the table has the values`,
        xTitle: chart === bars ? measure.unit : headers[1],
        yTitle: measure.unit,
        places: places.map(({name}) => name), series, ...measure.axis, ...spec,
    }), table(title, headers, rows));
}
