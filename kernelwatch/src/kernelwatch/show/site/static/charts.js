// The charts, drawn by Observable Plot. The colours of Okabe and Ito (2008) are safe for the colour-blind; each series also has its
// own symbol.
'use strict';

/**
 * @typedef {{name: string, values: ?number[], titles: ?string[]}} Series A line or a set of bars: its value at each place (an index on
 *     the axis of the chart), and the text that the pointer shows there.
 */

const SYMBOLS = [
    d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond,
    d3.symbolCross, d3.symbolStar, d3.symbolWye, d3.symbolDiamond2,
];
const CHARACTER = 7; // maximum width of a character, in pixels
const LOG = 'logarithmic';
const NO_ARROW = {labelArrow: 'none'};
const chooseColour = (place) => `var(--series-${place % SYMBOLS.length})`;

/* Draw a chart as wide as its container, and its legend: the series with their samples, and notes [sign, class, text]. The page's
   content security policy allows only the style of the class `plot`. Screen readers get `label` instead of Plot's own labels. */
function drawChart(container, {label, series}, samples, notes, options) {
    const names = series.map(({name}) => name);
    const plot = Plot.plot({
        className: 'plot',
        width: Math.max(280, container.clientWidth),
        ...options,
        color: {domain: names, range: names.map((_, place) => chooseColour(place))},
        symbol: {domain: names, range: names.map((_, place) => SYMBOLS[place % SYMBOLS.length])},
    });
    plot.setAttribute('aria-hidden', 'true');
    const makeSample = (place) => d3.create('svg').attr('viewBox', '-7 -7 14 14').attr('aria-hidden', 'true').call((svg) => svg.append('path')
        .attr('d', d3.symbol(samples[place % samples.length], 80)()).attr('fill', chooseColour(place))).node();
    const makeEntry = (sign, text) => makeElement('li', {}, sign, makeElement('span', {textContent: text}));
    container.append(makeElement('div', {role: 'img', ariaLabel: label}, plot), makeElement('ul', {className: 'project-legend'},
        ...names.map((name, place) => makeEntry(makeSample(place), name)),
        ...notes.map(([sign, className, text]) => makeEntry(makeElement('b', {className, textContent: sign, ariaHidden: true}), text))));
}

/* Return a mark that shows the title of the point nearest to the pointer. */
const makeTip = (points, options) => Plot.tip(points, Plot.pointer({title: 'title', maxRadius: 60, lineWidth: 100, ...options}));

const formatTick = (value) => String(+value.toPrecision(6));
const chooseTicks = (scale) => scale === LOG ? {tickFormat: formatTick, ticks: 5} : {tickFormat: formatTick};

/** Return whether a value was measured.
 * @type {(value: any) => boolean} */
const isValue = (value) => value !== null && value !== undefined;

/* Return the values at 0 to 100 % of `top`, as ticks of an axis of shares. */
const listShares = (top) => d3.range(0, 101, 20).map((percent) => percent * top / 100);

/* Return Plot's scale of the value axis. It begins at 0 unless it is `fitted` or logarithmic. It includes `top` and all values, because
   rates from the L2 cache exceed the peak of DRAM. */
function chooseScale({top, fitted, scale}, values) {
    if (scale === LOG) {
        const positive = values.filter((value) => value > 0);
        return {type: 'log', nice: true, domain: [d3.min(positive), d3.max(positive)], clamp: true};
    }
    return top === undefined ? {zero: !fitted, nice: true} : {domain: [0, d3.max([top, ...values])]};
}

/* Return the indices of positions whose labels fit beside each other, at least `room` apart. The last position is always among them. */
function listTicks(positions, room) {
    let next = Infinity;
    return d3.range(positions.length - 1, -1, -1).filter(function (place) {
        const fits = next - positions[place] >= room;
        next = fits ? positions[place] : next;
        return fits;
    }).reverse();
}

/** Draw lines over places, such as sizes or commits. The fields of `spec`:
 * - label: a description for screen readers; xTitle, yTitle: the titles of the axes.
 * - places: the labels on the x axis; positions: their numbers, by default at equal distances.
 * - top, fitted, scale: for `chooseScale`; share: the title of a second axis, for shares of `top`.
 * - series [{name, values, titles, hollow, noise, parts}]: a null among the values breaks the line, undefined does not. Values with
 *   different `parts` are not joined. A place with true in `hollow` has a hollow mark. `noise` is the relative width of a band around the
 *   values. hollowName and noiseName explain these marks and bands in the legend.
 * - changes [{place, since, title}]: a vertical line at a place, or a band from `since` if that is another place; changesName: legend.
 * - conditions [{place, title}]: marks on the x axis; conditionsName: legend.
 * @type {(container: HTMLElement, spec: Object<string, any>) => void} */
function drawLines(container, spec) {
    const {places, positions = d3.range(places.length), scale, top, share, changes = [], conditions = []} = spec;
    const findX = ({place}) => positions[place];
    const points = spec.series.flatMap(({name, values, titles, hollow = [], noise = [], parts = []}) => places.map((_, place) => ({
        series: name, place, value: values[place], title: titles[place], hollow: hollow[place] === true, noise: noise[place] ?? null,
        part: `${name} ${parts[place]}`,
    }))).filter(({value}) => value !== undefined);
    const bands = points.filter(({value, noise}) => isValue(value) && noise !== null).map(
        (point) => ({...point, low: point.value / (1 + point.noise), high: point.value * (1 + point.noise)}));
    const unit = Math.max(1, container.clientWidth - 120) / (positions.at(-1) - positions[0] + 1); // pixels
    const widest = CHARACTER * d3.max(places, (place) => place.length);
    const isTurned = listTicks(positions, widest / unit).length < places.length;
    const y = chooseScale(spec, [...points.map(({value}) => value).filter(isValue), ...bands.flatMap(({low, high}) => [low, high])]);
    const line = {x: findX, stroke: 'series', z: 'part'};
    const dot = {x: findX, y: 'value', symbol: 'series', r: 4};
    const [spans, marks] = [true, false].map((isSpan) => changes.filter(({place, since}) => (since !== place) === isSpan));
    const [hollow, full] = [true, false].map((isHollow) => points.filter((point) => point.hollow === isHollow));
    drawChart(container, spec, SYMBOLS, [
        ...hollow.length > 0 ? [['○', '', spec.hollowName]] : [],
        ...marks.length > 0 ? [['│', 'change', spec.changesName]] : [],
        ...spans.length > 0 ? [['▒', 'change', `${spec.changesName}, in one of several commits`]] : [],
        ...conditions.length > 0 ? [['◆', 'condition', spec.conditionsName]] : [],
        ...bands.length > 0 ? [['░', 'band', spec.noiseName]] : [],
    ], {
        height: 340 + (isTurned ? widest / 1.5 : 0),
        marginLeft: 56, marginTop: 32, marginRight: share === undefined ? 16 : 56, marginBottom: isTurned ? 38 + widest / 1.4 : 48,
        x: {domain: [positions[0] - 0.5, positions.at(-1) + 0.5]},
        y: {...y, insetBottom: conditions.length > 0 ? 10 : 0}, // room for their marks
        marks: [
            Plot.gridY(chooseTicks(scale)),
            Plot.axisX(listTicks(positions, isTurned ? 14 / unit : 0).map((place) => positions[place]), {
                tickFormat: (position) => places[positions.indexOf(position)], tickRotate: isTurned ? -45 : 0, label: spec.xTitle,
                labelAnchor: 'center', ...NO_ARROW,
            }),
            Plot.axisY({label: spec.yTitle, ...NO_ARROW, ...chooseTicks(scale)}),
            share === undefined ? null : Plot.axisY(listShares(top), {
                anchor: 'right', label: share, tickFormat: (value) => formatTick(100 * value / top), ...NO_ARROW,
            }),
            Plot.areaY(bands, {x: findX, y1: 'low', y2: 'high', z: 'part', fill: 'series', fillOpacity: 0.15, className: 'band'}),
            Plot.rect(spans, {x1: ({since}) => positions[since], x2: findX, title: 'title', className: 'span', fill: 'var(--change)',
                fillOpacity: 0.12, stroke: 'var(--change)', strokeOpacity: 0.4}),
            Plot.ruleX(marks, {x: findX, title: 'title', className: 'change', strokeWidth: 1.5, stroke: 'var(--change)'}),
            Plot.dot(changes, {x: ({since, place}) => (positions[since] + positions[place]) / 2, frameAnchor: 'top',
                symbol: d3.symbolTriangle, fill: 'var(--change)', className: 'change-flag'}),
            Plot.dot(conditions, {
                x: findX, frameAnchor: 'bottom', symbol: d3.symbolDiamond, r: 4, title: 'title', className: 'condition', fill: 'var(--unsure)',
            }),
            Plot.line(points, {y: 'value', ...line, strokeWidth: 2, className: 'line'}),
            Plot.dot(full, {...dot, fill: 'series', className: 'mark'}),
            Plot.dot(hollow, {...dot, stroke: 'series', fill: 'var(--paper)', className: 'mark hollow'}),
            makeTip(points, {x: findX, y: 'value'}),
        ],
    });
}

/** Draw groups of horizontal bars. Names of kernels are long, so they stand above their group. The fields of `spec`:
 * - label, xTitle, top, share, series: as for `drawLines`.
 * - places: the title of each group.
 * - ceilings: a value or null for each group, drawn as a line across the group; ceilingName: legend.
 * @type {(container: HTMLElement, spec: Object<string, any>) => void} */
function drawBars(container, spec) {
    const {places, share, ceilings = []} = spec;
    const bars = spec.series.flatMap(({name, values, titles}) => places.map((group, place) => ({
        series: name, group, value: values[place], title: titles[place],
    }))).filter(({value}) => value !== null);
    const limits = ceilings.map((value, place) => ({value, group: places[place]})).filter(({value}) => isValue(value));
    const top = spec.top || d3.max([...bars.map(({value}) => value), ...ceilings]) || 1;
    const isLong = ({value}) => value > 0.85 * top;
    const text = {fy: 'group', x: 'value', y: 'series', text: ({value}) => formatNumber(value), className: 'value'};
    drawChart(container, spec, [d3.symbolSquare], limits.length > 0 ? [['┇', '', spec.ceilingName]] : [], {
        height: places.length * (26 + 17 * spec.series.length) + 84,
        marginLeft: 12, marginRight: 28, marginTop: share === undefined ? 20 : 44, marginBottom: 40,
        x: {domain: [0, top], nice: spec.top === undefined},
        y: {domain: spec.series.map(({name}) => name), axis: null, insetTop: 20, padding: 0.12},
        fy: {domain: places, axis: null, padding: 0.04},
        marks: [
            Plot.gridX(),
            Plot.axisX({label: spec.xTitle, labelAnchor: 'center', tickFormat: formatTick, anchor: 'bottom', ...NO_ARROW}),
            share === undefined ? null : Plot.axisX(listShares(top), {
                anchor: 'top', label: share, labelAnchor: 'center', tickFormat: (value) => formatTick(100 * value / top), ...NO_ARROW,
            }),
            Plot.tickX(limits, {fy: 'group', x: 'value', strokeDasharray: '5 4', strokeWidth: 1.5, className: 'ceiling'}),
            Plot.barX(bars, {fy: 'group', y: 'series', x: 'value', fill: 'series', className: 'bar'}),
            Plot.text(bars.filter((bar) => !isLong(bar)), {...text, textAnchor: 'start', dx: 5}),
            Plot.text(bars.filter(isLong), {...text, textAnchor: 'end', dx: -5, fill: 'var(--paper)'}),
            Plot.text(places, {
                fy: (group) => group, text: (group) => group, frameAnchor: 'top-left', dx: 3, dy: 4, monospace: true,
                stroke: 'var(--paper)', strokeWidth: 4, fill: 'currentColor', className: 'group',
            }),
            makeTip(bars, {fy: 'group', x: 'value', y: 'series'}),
            Plot.ruleX([0]),
        ],
    });
}
