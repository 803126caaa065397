// The charts, drawn by Observable Plot. The colours of Okabe and Ito (2008) are safe for the colour-blind; each series also has its
// own symbol. The spec of every chart has `label`, a description for screen readers, and `series`, each with its name.
'use strict';

const SYMBOLS = [
    d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond,
    d3.symbolCross, d3.symbolStar, d3.symbolWye, d3.symbolDiamond2,
];
const CHARACTER = 7; // maximum width of a character, in pixels
const LOG = 'logarithmic';
const colour = (at) => `var(--series-${at % SYMBOLS.length})`;

/* Draw a chart as wide as its container, and its legend: the series, and `notes` with a sample and a text each. The page's policy
   allows the style of this class. Plot's own labels name parts of the chart, so screen readers get `label` instead. */
function draw(container, {label, series}, samples, notes, options) {
    const names = series.map(({name}) => name);
    const made = Plot.plot({
        className: 'plot',
        width: Math.max(280, container.clientWidth),
        ...options,
        color: {domain: names, range: names.map((_, at) => colour(at))},
        symbol: {domain: names, range: names.map((_, at) => SYMBOLS[at % SYMBOLS.length])},
    });
    made.setAttribute('aria-hidden', 'true');
    const sample = (at) => d3.create('svg').attr('viewBox', '-7 -7 14 14').attr('aria-hidden', 'true').call((svg) => svg.append('path')
        .attr('d', d3.symbol(samples[at % samples.length], 80)()).attr('fill', colour(at))).node();
    const entry = (sign, text) => element('li', {}, sign, element('span', {textContent: text}));
    container.append(element('div', {role: 'img', ariaLabel: label}, made), element('ul', {className: 'project-legend'},
        ...names.map((name, at) => entry(sample(at), name)),
        ...notes.map(([sign, className, text]) => entry(element('b', {className, textContent: sign, ariaHidden: true}), text))));
}

/* The tip of the point nearest to the pointer. */
const told = (points, options) => Plot.tip(points, Plot.pointer({title: 'title', maxRadius: 60, lineWidth: 100, ...options}));

const plain = (value) => String(+value.toPrecision(6));
const few = (scale) => scale === LOG ? {tickFormat: plain, ticks: 5} : {tickFormat: plain};
const noArrow = {labelArrow: 'none'};
const isValue = (value) => value !== null && value !== undefined;

/* The ticks of an axis for shares of `top` in %. */
const shares = (top) => d3.range(0, 101, 20).map((part) => part * top / 100);

/* The scale of the value axis: from 0 unless `fitted` or logarithmic. It includes `top` and all values, as rates from the L2 cache
   exceed the peak of DRAM. */
function extent({top, fitted, scale}, values) {
    if (scale === LOG) {
        const positive = values.filter((value) => value > 0);
        return {type: 'log', nice: true, domain: [d3.min(positive), d3.max(positive)], clamp: true};
    }
    return top === undefined ? {zero: !fitted, nice: true} : {domain: [0, d3.max([top, ...values])]};
}

/* Draw lines over places such as sizes or commits.
   spec: xTitle, yTitle, places (texts); top, fitted and scale for `extent`; share: the title of a second axis for shares of `top`;
   series: [{name, values, titles, hollow, noise}] by place, with hollowName and noiseName for the legend: a band of the relative width
    `noise` lies around the values; changes: [{place, since, title}], drawn as vertical lines, or as bands from `since` if that is another
    place, and conditions: [{place, title}], drawn as dashed lines, with changesName and conditionsName for the legend. */
function lines(container, spec) {
    const {places, scale, top, share, changes = [], conditions = []} = spec;
    const points = spec.series.flatMap(({name, values, titles, hollow = [], noise = []}) => places.map((_, place) => ({
        series: name, place, value: values[place], title: titles[place], hollow: hollow[place] === true, noise: noise[place] ?? null})));
    const bands = points.filter(({value, noise}) => isValue(value) && noise !== null).map(
        (point) => ({...point, low: point.value / (1 + point.noise), high: point.value * (1 + point.noise)}));
    const room = Math.max(1, container.clientWidth - 120) / places.length;
    const widest = CHARACTER * d3.max(places, (place) => place.length);
    const turned = widest > room;
    const step = turned ? Math.ceil(14 / room) : 1; // labels that would overlap are left out
    const y = extent(spec, [...points.map(({value}) => value).filter(isValue), ...bands.flatMap(({low, high}) => [low, high])]);
    const line = {x: 'place', stroke: 'series', z: 'series'};
    const dot = {x: 'place', y: 'value', symbol: 'series', r: 4};
    const [spans, alone] = [true, false].map((wanted) => changes.filter(({place, since}) => (since !== place) === wanted));
    const [hollow, full] = [true, false].map((wanted) => points.filter((one) => one.hollow === wanted));
    draw(container, spec, SYMBOLS, [
        ...hollow.length > 0 ? [['○', '', spec.hollowName]] : [],
        ...alone.length > 0 ? [['│', 'change', spec.changesName]] : [],
        ...spans.length > 0 ? [['▒', 'change', `${spec.changesName}, in one of several commits`]] : [],
        ...conditions.length > 0 ? [['┊', 'condition', spec.conditionsName]] : [],
        ...bands.length > 0 ? [['░', 'band', spec.noiseName]] : [],
    ], {
        height: 340 + (turned ? widest / 1.5 : 0),
        marginLeft: 56, marginTop: 32, marginRight: share === undefined ? 16 : 56, marginBottom: turned ? 38 + widest / 1.4 : 48,
        x: {domain: [-0.5, places.length - 0.5]},
        y,
        marks: [
            Plot.gridY(few(scale)),
            Plot.axisX(d3.range(0, places.length, step), {
                tickFormat: (at) => places[at], tickRotate: turned ? -45 : 0, label: spec.xTitle, labelAnchor: 'center', ...noArrow,
            }),
            Plot.axisY({label: spec.yTitle, ...noArrow, ...few(scale)}),
            share === undefined ? null : Plot.axisY(shares(top), {
                anchor: 'right', label: share, tickFormat: (value) => plain(100 * value / top), ...noArrow,
            }),
            Plot.areaY(bands, {x: 'place', y1: 'low', y2: 'high', z: 'series', fill: 'series', fillOpacity: 0.15, className: 'band'}),
            Plot.ruleX(conditions, {
                x: 'place', dx: -4, title: 'title', className: 'condition', strokeWidth: 1.5, strokeDasharray: '2 4', stroke: 'var(--unsure)',
            }),
            Plot.rect(spans, {x1: 'since', x2: 'place', title: 'title', className: 'span', fill: 'var(--change)', fillOpacity: 0.12,
                stroke: 'var(--change)', strokeOpacity: 0.4}),
            Plot.ruleX(alone, {x: 'place', title: 'title', className: 'change', strokeWidth: 1.5, stroke: 'var(--change)'}),
            Plot.dot(changes, {x: ({since, place}) => (since + place) / 2, frameAnchor: 'top', symbol: d3.symbolTriangle, fill: 'var(--change)', className: 'change-flag'}),
            Plot.line(points, {y: 'value', ...line, strokeWidth: 2, className: 'line'}),
            Plot.dot(full, {...dot, fill: 'series', className: 'mark'}),
            Plot.dot(hollow, {...dot, stroke: 'series', fill: 'var(--paper)', className: 'mark hollow'}),
            told(points, {x: 'place', y: 'value'}),
        ],
    });
}

/* Draw groups of horizontal bars. Names of kernels are long, so they stand above their group.
   spec: xTitle, top, share and series as for `lines`; places (texts), one for each group; ceilings: a value or null for each group,
   drawn as a line across the group, with ceilingName for the legend. */
function bars(container, spec) {
    const {places, top: given, share, ceilings = []} = spec;
    const values = spec.series.flatMap(({name, values: own, titles}) => places.map((group, at) => ({
        series: name, group, value: own[at], title: titles[at],
    }))).filter(({value}) => value !== null);
    const limits = ceilings.map((value, at) => ({value, group: places[at]})).filter(({value}) => isValue(value));
    const top = given || d3.max([...values.map(({value}) => value), ...ceilings]) || 1;
    const inside = ({value}) => value > 0.85 * top;
    const text = {fy: 'group', x: 'value', y: 'series', text: ({value}) => digits(value), className: 'value'};
    draw(container, spec, [d3.symbolSquare], limits.length > 0 ? [['┇', '', spec.ceilingName]] : [], {
        height: places.length * (26 + 17 * spec.series.length) + 84,
        marginLeft: 12, marginRight: 28, marginTop: share === undefined ? 20 : 44, marginBottom: 40,
        x: {domain: [0, top], nice: given === undefined},
        y: {domain: spec.series.map(({name}) => name), axis: null, insetTop: 20, padding: 0.12},
        fy: {domain: places, axis: null, padding: 0.04},
        marks: [
            Plot.gridX(),
            Plot.axisX({label: spec.xTitle, labelAnchor: 'center', tickFormat: plain, anchor: 'bottom', ...noArrow}),
            share === undefined ? null : Plot.axisX(shares(top), {
                anchor: 'top', label: share, labelAnchor: 'center', tickFormat: (value) => plain(100 * value / top), ...noArrow,
            }),
            Plot.tickX(limits, {fy: 'group', x: 'value', strokeDasharray: '5 4', strokeWidth: 1.5, className: 'ceiling'}),
            Plot.barX(values, {fy: 'group', y: 'series', x: 'value', fill: 'series', className: 'bar'}),
            Plot.text(values.filter((one) => !inside(one)), {...text, textAnchor: 'start', dx: 5}),
            Plot.text(values.filter(inside), {...text, textAnchor: 'end', dx: -5, fill: 'var(--paper)'}),
            Plot.text(places, {
                fy: (group) => group, text: (group) => group, frameAnchor: 'top-left', dx: 3, dy: 4, monospace: true,
                stroke: 'var(--paper)', strokeWidth: 4, fill: 'currentColor', className: 'group',
            }),
            told(values, {fy: 'group', x: 'value', y: 'series'}),
            Plot.ruleX([0]),
        ],
    });
}
