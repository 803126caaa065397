// The charts, drawn by Observable Plot. Colours are those of Okabe and Ito (2008), which the colour-blind tell apart; every
// series has a symbol of its own besides.
'use strict';

(function (coalescing) {
    const {Plot, d3} = window;
    const SYMBOLS = [
        d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond,
        d3.symbolCross, d3.symbolStar, d3.symbolWye, d3.symbolDiamond2,
    ];
    const CHARACTER = 7; // pixels that one takes at most, in figures
    const LOG = 'logarithmic';
    const turn = (names, some) => names.map((_, at) => some[at % some.length]);
    const colour = (at) => `var(--series-${at % SYMBOLS.length})`;
    const some = (points) => points.some(({beside}) => beside !== null);

    /* Two digits or more, no more than needed. */
    function digits(value) {
        return value === null ? null : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
    }

    /* A drawing as wide as its container, and a description for those who do not see it: Plot's own labels name its parts,
       not what they show. The policy knows the style of this class. */
    function draw(container, label, names, options) {
        const made = Plot.plot({
            className: 'plot',
            width: Math.max(280, container.clientWidth),
            ...options,
            color: {domain: names, range: turn(names, SYMBOLS.map((_, at) => colour(at)))},
            symbol: {domain: names, range: turn(names, SYMBOLS)},
        });
        made.setAttribute('aria-hidden', 'true');
        container.append(coalescing.view.element('div', {role: 'img', ariaLabel: label}, made));
    }

    /* What the marks of a chart stand for, under it: samples and their names. */
    function legend(container, entries) {
        const list = coalescing.view.element('ul', {className: 'project-legend'});
        entries.forEach(function ([sample, name]) {
            const picture = d3.create('svg').attr('width', 28).attr('height', 14).attr('viewBox', '-14 -7 28 14')
                .attr('aria-hidden', 'true');
            sample.forEach(([tag, attributes]) => Object.entries(attributes).reduce(
                (made, [key, value]) => made.attr(key, value), picture.append(tag)));
            list.append(coalescing.view.element('li', {}, picture.node(), coalescing.view.element('span', {textContent: name})));
        });
        container.append(list);
    }

    const symbol = (at) => ['path', {d: d3.symbol(SYMBOLS[at % SYMBOLS.length], 50)(), fill: colour(at)}];
    const across = (attributes) => ['line', {x1: -14, x2: 14, 'stroke-width': 2, ...attributes}];
    const upright = (attributes) => ['line', {y1: -7, y2: 7, 'stroke-width': 2, ...attributes}];
    const INK = {stroke: 'currentColor'};
    const DASHED = {...INK, 'stroke-dasharray': '5 4'};
    const BEFORE = {...INK, 'stroke-width': 3};
    const CHANGE = {stroke: 'var(--change)'};
    const PAPER = {fill: 'var(--paper)'};

    /* What is nearest to the pointer says what it is. */
    const told = (points, options) => Plot.tip(points, Plot.pointer({
        title: 'title', maxRadius: 60, lineWidth: 100, ...options}));

    /* The axis of the values, from 0 unless `fitted` to them or logarithmic; up to `top`, where there is one. */
    function extent({top, fitted, scale}, values) {
        if (scale === LOG) {
            const positive = values.filter((value) => value > 0);
            return {type: 'log', nice: top === undefined, domain: [d3.min(positive), top || d3.max(positive)], clamp: true};
        }
        // Rates from the L2 cache exceed the peak of DRAM.
        return top === undefined ? {zero: !fitted, nice: true} : {domain: [0, d3.max([top, ...values])]};
    }

    const plain = (value) => String(+value.toPrecision(6));
    const few = (scale) => scale === LOG ? {tickFormat: plain, ticks: 5} : {tickFormat: plain};
    const shares = ({share, top, scale}) => share === undefined ? [] : (scale === LOG ? [1, 2, 5, 10, 20, 50, 100]
        : [0, 20, 40, 60, 80, 100]).map((percent) => percent * top / 100);

    /* Lines over places that stand side by side, such as sizes or commits.
       spec: label, xTitle, yTitle, places (texts), top, fitted and scale (as of `extent`),
       share: what a second axis says of the share of `top` in %,
       series: [{name, values, beside, titles}] with null where there is no value; `beside` is what a line is compared with,
       drawn dashed, and besideName what that is,
       hollow: names of the marks that are drawn hollow; a series says of each place whether its mark is one,
       positions: where the places lie on a logarithmic axis (numbers above 0, rising); without, they lie at equal distances,
       changes: [{place, title}], marked by a line from top to bottom, and changesName: what they are,
       boundary: {before, name}, a line before the place of that index. */
    function lines(container, spec) {
        const names = spec.series.map(({name}) => name);
        const {changes = [], boundary} = spec;
        const apart = spec.positions !== undefined;
        // As a linear axis of logarithms: Plot labels only some numbers of a logarithmic one.
        const positions = apart ? spec.positions.map(Math.log10) : d3.range(spec.places.length);
        const points = spec.series.flatMap((series) => spec.places.map((_, place) => ({
            series: series.name, place: positions[place], value: series.values[place], title: series.titles[place],
            beside: series.beside === undefined ? null : series.beside[place],
            hollow: series.hollow !== undefined && series.hollow[place],
        })));
        const widest = CHARACTER * d3.max(spec.places, (place) => place.length);
        const edge = apart ? 0.04 * (positions.at(-1) - positions[0]) : 0.5;
        const domain = [positions[0] - edge, positions.at(-1) + edge];
        const pixels = d3.scaleLinear(domain, [0, Math.max(1, container.clientWidth - 120)]);
        const least = d3.min(d3.pairs(positions, (one, next) => pixels(next) - pixels(one)));
        const turned = widest > least;
        // Texts that stand too close are left out.
        const ticks = positions.reduce((kept, at) => kept.length > 0 && pixels(at) - pixels(kept.at(-1)) < (turned ? 14 : 0)
            ? kept : [...kept, at], []);
        const border = boundary && d3.mean([boundary.before - 1, boundary.before], (at) => positions[at]);
        const values = points.flatMap(({value, beside}) => [value, beside]).filter((value) => value !== null);
        const y = extent(spec, values);
        const lowest = spec.scale === LOG ? y.domain[0] : 0;
        const line = {x: 'place', stroke: 'series', z: 'series', strokeWidth: 2};
        draw(container, spec.label, names, {
            height: 340 + (turned ? widest / 1.5 : 0),
            marginLeft: 56,
            marginTop: 32,
            marginRight: spec.share === undefined ? 16 : 56,
            marginBottom: turned ? 38 + widest / 1.4 : 48,
            x: {domain},
            y,
            marks: [
                Plot.gridY(few(spec.scale)),
                Plot.axisX(ticks, {
                    tickFormat: (at) => spec.places[positions.indexOf(at)], tickRotate: turned ? -45 : 0, label: spec.xTitle, labelArrow: 'none',
                    labelAnchor: 'center',
                }),
                Plot.axisY({label: spec.yTitle, labelArrow: 'none', ...few(spec.scale)}),
                ...(spec.share === undefined ? [] : [Plot.axisY(shares(spec).filter((value) => value >= lowest), {
                    anchor: 'right', label: spec.share, labelArrow: 'none', tickFormat: (value) => plain(100 * value / spec.top),
                })]),
                Plot.ruleX(changes, {x: ({place}) => positions[place], title: 'title', className: 'change', strokeWidth: 1.5, ...CHANGE}),
                Plot.dot(changes, {
                    x: ({place}) => positions[place], frameAnchor: 'top', symbol: d3.symbolTriangle, fill: CHANGE.stroke, className: 'change-flag',
                }),
                ...(boundary === undefined ? [] : [
                    Plot.ruleX([border], {strokeDasharray: '1 3', strokeWidth: 1.5, className: 'boundary'}),
                    Plot.text([boundary.name], {x: border, frameAnchor: 'top', dy: -12}),
                ]),
                Plot.line(points, {y: 'beside', ...line, strokeWidth: 1.5, strokeDasharray: '5 4', className: 'dashed'}),
                Plot.line(points, {y: 'value', ...line, className: 'line'}),
                Plot.dot(points.filter(({hollow}) => !hollow), {
                    x: 'place', y: 'value', fill: 'series', symbol: 'series', r: 4, className: 'mark',
                }),
                Plot.dot(points.filter(({hollow}) => hollow), {
                    x: 'place', y: 'value', stroke: 'series', symbol: 'series', r: 4, className: 'mark hollow', ...PAPER,
                }),
                told(points, {x: 'place', y: 'value'}),
            ],
        });
        legend(container, [
            ...spec.series.map(({name}, at) => [[across({stroke: colour(at)}), symbol(at)], name]),
            ...(points.some(({hollow}) => hollow) ? [[[['circle', {r: 4, ...INK, ...PAPER}]], spec.hollow]] : []),
            ...(some(points) ? [[[across(DASHED)], spec.besideName]] : []),
            ...(changes.length > 0 ? [[[upright(CHANGE)], spec.changesName]] : []),
        ]);
    }

    /* Groups of horizontal bars: names of kernels are long, and stand above their group on any width.
       spec: label, xTitle, top, share, series and besideName (as of `lines`), places (texts), each a group,
       ceilings: a value or null by group, each a line across its group, and ceilingName: what they are. */
    function bars(container, spec) {
        const names = spec.series.map(({name}) => name);
        const points = spec.series.flatMap((series) => spec.places.map((group, at) => ({
            series: series.name, group, value: series.values[at], title: series.titles[at],
            beside: series.beside === undefined ? null : series.beside[at],
        })));
        const measured = points.filter(({value}) => value !== null);
        const {ceilings = []} = spec;
        const top = spec.top || d3.max([...measured.flatMap(({value, beside}) => [value, beside]), ...ceilings]) || 1;
        const inside = ({value}) => value > 0.85 * top;
        const label = {fy: 'group', x: 'value', y: 'series', text: ({value}) => digits(value), className: 'value'};
        draw(container, spec.label, names, {
            height: spec.places.length * (26 + 17 * names.length) + 84,
            marginLeft: 12,
            marginRight: 28,
            marginTop: spec.share === undefined ? 20 : 44,
            marginBottom: 40,
            x: {domain: [0, top], nice: spec.top === undefined},
            y: {domain: names, axis: null, insetTop: 20, padding: 0.12},
            fy: {domain: spec.places, axis: null, padding: 0.04},
            marks: [
                Plot.gridX(),
                Plot.axisX({label: spec.xTitle, labelArrow: 'none', labelAnchor: 'center', tickFormat: plain, anchor: 'bottom'}),
                ...(spec.share === undefined ? [] : [Plot.axisX(shares({...spec, scale: 'linear'}), {
                    anchor: 'top', label: spec.share, labelArrow: 'none', labelAnchor: 'center',
                    tickFormat: (value) => plain(100 * value / top),
                })]),
                Plot.tickX(ceilings.map((value, at) => ({value, group: spec.places[at]})).filter(({value}) => value !== null), {
                    fy: 'group', x: 'value', strokeDasharray: '5 4', strokeWidth: 1.5, className: 'ceiling',
                }),
                Plot.barX(measured, {fy: 'group', y: 'series', x: 'value', fill: 'series', className: 'bar'}),
                Plot.tickX(points.filter(({beside}) => beside !== null), {
                    fy: 'group', y: 'series', x: 'beside', strokeWidth: 3, className: 'before',
                }),
                Plot.text(measured.filter((one) => !inside(one)), {
                    ...label, x: ({value, beside}) => Math.max(value, beside), textAnchor: 'start', dx: 5,
                }),
                Plot.text(measured.filter(inside), {...label, textAnchor: 'end', dx: -5, fill: 'var(--paper)'}),
                Plot.text(spec.places, {
                    fy: (group) => group, text: (group) => group, frameAnchor: 'top-left', dx: 3, dy: 4, monospace: true,
                    stroke: 'var(--paper)', strokeWidth: 4, fill: 'currentColor', className: 'group',
                }),
                told(measured, {fy: 'group', x: 'value', y: 'series'}),
                Plot.ruleX([0]),
            ],
        });
        legend(container, [
            ...names.map((name, at) => [[['rect', {x: -12, y: -6, width: 24, height: 12, fill: colour(at)}]], name]),
            ...(ceilings.some((value) => value !== null && value !== undefined) ? [[[upright(DASHED)], spec.ceilingName]] : []),
            ...(some(points) ? [[[upright(BEFORE)], spec.besideName]] : []),
        ]);
    }

    /* Points on two logarithmic axes. spec: label, xTitle, yTitle, series: [{name, points: [{x, y, title}]}]; a y of 0 lies on
       the lower edge. */
    function scatter(container, spec) {
        const names = spec.series.map(({name}) => name);
        const points = spec.series.flatMap(({name, points: own}) => own.map((point) => ({series: name, ...point})));
        const least = d3.min(points.filter(({y}) => y > 0), ({y}) => y) || 1;
        draw(container, spec.label, names, {
            height: 420,
            marginLeft: 56,
            marginBottom: 44,
            grid: true,
            x: {type: 'log', nice: true, label: spec.xTitle, labelArrow: 'none', ...few(LOG)},
            y: {type: 'log', nice: true, label: spec.yTitle, labelArrow: 'none', ...few(LOG)},
            marks: [
                Plot.dot(points, {
                    x: 'x', y: ({y}) => Math.max(y, least), fill: 'series', symbol: 'series', r: 3.5, className: 'mark',
                }),
                told(points, {x: 'x', y: ({y}) => Math.max(y, least)}),
            ],
        });
        legend(container, names.map((name, at) => [[symbol(at)], name]));
    }

    coalescing.charts = {lines, bars, scatter, digits, LOG};
})(window.coalescing);
