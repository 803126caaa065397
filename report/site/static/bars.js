// A chart of groups of horizontal bars: names of kernels are long, and stand above their group on any width.
'use strict';

(function (coalescing) {
    const {make, text, ticks, colour, legend, drawing, figure} = coalescing.svg;
    const BAR = 15;
    const HEADING = 20;
    const GAP = 8;

    /* spec: label, xTitle, groups (texts), top (end of the axis),
       series: [{name, values, titles, marks}] with null where there is no value; `marks` are what is compared with,
       marksName: what they are, if there are any,
       share: {title}, if a second axis shows the share of `top` in %,
       ceilings: a value or null by group, each a line across its group, and ceilingName: what they are. */
    function bars(container, spec) {
        const each = HEADING + BAR * spec.series.length + GAP;
        const upper = spec.share === undefined ? 8 : 40;
        const {svg, width, height} = drawing(container, upper + each * spec.groups.length + 44, spec.label);
        const [left, right, lower] = [12, width - 24, height - 44];
        const x = (value) => left + (right - left) * Math.min(value / spec.top, 1);

        ticks(spec.top, 5).forEach(function (value) {
            svg.append(
                make('line', {x1: x(value), x2: x(value), y1: upper, y2: lower, class: 'grid'}),
                text(x(value), lower + 18, String(+value.toPrecision(6)), {class: 'middle'}));
        });
        svg.append(text((left + right) / 2, height - 6, spec.xTitle, {class: 'middle'}));
        if (spec.share !== undefined) {
            ticks(100, 5).forEach(function (value) {
                svg.append(text(x(value * spec.top / 100), upper - 6, String(value), {class: 'middle'}));
            });
            svg.append(text((left + right) / 2, 14, spec.share.title, {class: 'middle'}));
        }
        spec.groups.forEach(function (group, row) {
            const start = upper + each * row;
            const ceiling = spec.ceilings === undefined ? null : spec.ceilings[row];
            if (ceiling !== null) { // before the group's name, which may reach across it
                svg.append(make(
                    'line', {x1: x(ceiling), x2: x(ceiling), y1: start, y2: start + each, class: 'line dashed'},
                    make('title', {}, `${spec.ceilingName}: ${figure(ceiling)}`)));
            }
            svg.append(text(left, start + HEADING - 5, group, {class: 'group'}));
            spec.series.forEach(function (series, index) {
                const value = series.values[row];
                if (value === null) {
                    return;
                }
                const place = start + HEADING + BAR * index;
                const bar = make(
                    'rect',
                    {x: left, y: place, width: Math.max(x(value) - left, 1), height: BAR - 2, class: `bar ${colour(index)}`},
                    make('title', {}, series.titles[row]));
                const marked = series.marks === undefined ? null : series.marks[row];
                const end = Math.max(x(value), marked === null ? 0 : x(marked));
                const inside = end > right - 60;
                svg.append(bar, text(inside ? x(value) - 5 : end + 5, place + BAR - 5, figure(value), {
                    class: inside ? 'end inside' : 'value',
                }));
                if (marked !== null) {
                    svg.append(make('line', {
                        x1: x(marked), x2: x(marked), y1: place - 1, y2: place + BAR - 1, class: 'before',
                    }));
                }
            });
        });
        svg.append(make('line', {x1: left, x2: left, y1: upper, y2: lower, class: 'axis'}));

        const entries = spec.series.map((series, index) => [
            [make('rect', {x: -12, y: -6, width: 24, height: 12, class: `bar ${colour(index)}`})], series.name,
        ]);
        if (spec.ceilings !== undefined && spec.ceilings.some((value) => value !== null)) {
            entries.push([[make('line', {x1: 0, x2: 0, y1: -7, y2: 7, class: 'line dashed'})], spec.ceilingName]);
        }
        if (spec.marksName !== undefined) {
            entries.push([[make('line', {x1: 0, x2: 0, y1: -7, y2: 7, class: 'before'})], spec.marksName]);
        }
        container.append(legend(entries));
    }

    coalescing.bars = bars;
})(window.coalescing);
