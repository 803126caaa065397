// The figure of a benchmark with its table. It has lines (kernels, dtypes or flags), each with a value at several places (such as sizes).
'use strict';

/**
 * @typedef {{benchmark: Benchmark, points: Point[]}} Sweep A benchmark with its measured configurations.
 * @typedef {{unit: string, convert: (point: Point) => ?number, describe: (name: string, value: number) => string, axis: object}}
 *     Measure The unit of a chart's numbers, functions that return a point's number and its text at the pointer, and options of the axis.
 */

/* Return the series of a chart, from lines {name, points} and places {name, key}; lines without any value are left out. */
function listSeries(lines, places, measure) {
    return lines.map(function ({name, points}) {
        const placed = places.map(({key}) => filterPoints(points, key)[0] || null);
        const values = placed.map((point) => point && measure.convert(point));
        const titles = values.map((value, row) => value === null ? null : measure.describe(`${places[row].name}, ${name}`, value));
        return {name, points: placed, values, titles};
    }).filter(({values}) => values.some(isValue));
}

/** Draw a chart, bars or lines, and a table with a row for each value. The fields of `spec`:
 * - title, note: those of the figure; measure: what the chart shows.
 * - lines {name, points}; places {name, key}, where `key` has the values of axes at a place.
 * - headers, cells: the table's headers, and a function that returns the cells of a point.
 * - all others: options of the chart.
 * @type {(display: HTMLElement, drawChart: typeof drawBars | typeof drawLines, spec: Object<string, any>) => void} */
function drawSweep(display, drawChart, {title, note, places, lines, measure, headers, cells, ...options}) {
    const series = listSeries(lines, places, measure);
    if (series.length === 0) {
        return;
    }
    const areBars = drawChart === drawBars;
    const makeRow = ({points}, place, ...names) => points[place] === null ? [] : [[...names, ...cells(points[place])]];
    const rows = areBars
        ? places.flatMap(({name}, place) => series.flatMap(
            (line) => makeRow(line, place, name, ...line.name === measure.unit ? [] : [line.name])))
        : series.flatMap((line) => places.flatMap(({name}, place) => makeRow(line, place, line.name, name)));
    addFigure(display, title, note, (container) => drawChart(container, {
        label: `${title}: ${measure.unit} by ${headers[areBars ? 0 : 1]}; the table has the values`,
        xTitle: areBars ? measure.unit : headers[1],
        yTitle: measure.unit,
        places: places.map(({name}) => name), series, ...measure.axis, ...options,
    }), makeTable(title, headers, rows));
}
