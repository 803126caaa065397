// A chart of points on two logarithmic axes.
'use strict';

(function (coalescing) {
    const {make, text, mark, legend, drawing} = coalescing.svg;

    /* The powers of ten around some positive values. */
    function powers(values) {
        const [least, most] = [Math.min(...values), Math.max(...values)].map(Math.log10);
        const first = Math.floor(least);
        return Array.from({length: Math.max(1, Math.ceil(most) - first) + 1}, (_, index) => first + index);
    }

    /* spec: label, xTitle, yTitle, series: [{name, points: [{x, y, title}]}]; a y of 0 lies on the lower edge. */
    function scatter(container, spec) {
        const {svg, width, height} = drawing(container, 380, spec.label);
        const [left, right, upper, lower] = [62, width - 20, 12, height - 44];
        const all = spec.series.flatMap((series) => series.points);
        const across = powers(all.map((point) => point.x));
        const up = powers([1, ...all.map((point) => point.y)].filter((value) => value > 0));
        const part = (value, ends) => value <= 0 ? 0 : (Math.log10(value) - ends[0]) / (ends[ends.length - 1] - ends[0]);
        const x = (value) => left + (right - left) * part(value, across);
        const y = (value) => lower - (lower - upper) * part(value, up);

        up.forEach(function (power) {
            const place = y(10 ** power);
            svg.append(
                make('line', {x1: left, x2: right, y1: place, y2: place, class: 'grid'}),
                text(left - 6, place + 4, String(+(10 ** power).toPrecision(3)), {class: 'end'}));
        });
        across.forEach(function (power) {
            const place = x(10 ** power);
            svg.append(
                make('line', {x1: place, x2: place, y1: upper, y2: lower, class: 'grid'}),
                text(place, lower + 18, String(+(10 ** power).toPrecision(3)), {class: 'middle'}));
        });
        svg.append(
            make('line', {x1: left, x2: right, y1: lower, y2: lower, class: 'axis'}),
            text((left + right) / 2, height - 6, spec.xTitle, {class: 'middle'}),
            text(0, 0, spec.yTitle, {transform: `translate(14,${(upper + lower) / 2}) rotate(-90)`, class: 'middle'}));
        spec.series.forEach((series, index) => series.points.forEach(
            (point) => svg.append(mark(index, x(point.x), y(point.y), point.title))));
        container.append(legend(spec.series.map((series, index) => [[mark(index, 0, 0)], series.name])));
    }

    coalescing.scatter = scatter;
})(window.coalescing);
