// A chart of lines over a few places that are not evenly far apart (offsets, strides): they stand side by side.
'use strict';

(function (coalescing) {
    const {make, text, ticks, mark, legend, drawing} = coalescing.svg;

    /* spec: label, xTitle, yTitle, places (texts), top (end of the y axis),
       series: [{name, values, dashed, titles}] with null where there is no value; `dashed` is what was predicted,
       share: {title}, if a second y axis shows the share of `top` in %,
       dashedName: what the dashed lines are. */
    function lines(container, spec) {
        const {svg, width, height} = drawing(container, 340, spec.label);
        const left = 58;
        const right = width - (spec.share === undefined ? 14 : 52);
        const [upper, lower] = [12, height - 54];
        const step = (right - left) / spec.places.length;
        const x = (index) => left + step * (index + 0.5);
        const y = (value) => lower - (lower - upper) * Math.min(value / spec.top, 1);

        ticks(spec.top, 5).forEach(function (value) {
            svg.append(
                make('line', {x1: left, x2: right, y1: y(value), y2: y(value), class: 'grid'}),
                text(left - 6, y(value) + 4, String(+value.toPrecision(6)), {class: 'end'}));
        });
        if (spec.share !== undefined) {
            ticks(100, 5).forEach(function (value) {
                svg.append(text(right + 6, y(value * spec.top / 100) + 4, String(value), {}));
            });
            svg.append(text(0, 0, spec.share.title, {
                transform: `translate(${width - 6},${(upper + lower) / 2}) rotate(-90)`, class: 'middle',
            }));
        }
        // Long names take turns on two lines, so that they do not run into one another.
        const crowded = spec.places.some((place) => place.length * 8 > step);
        spec.places.forEach(function (place, index) {
            svg.append(text(x(index), lower + (crowded && index % 2 === 1 ? 30 : 16), place, {class: 'middle'}));
        });
        svg.append(
            make('line', {x1: left, x2: right, y1: lower, y2: lower, class: 'axis'}),
            text((left + right) / 2, height - 6, spec.xTitle, {class: 'middle'}),
            text(0, 0, spec.yTitle, {
                transform: `translate(14,${(upper + lower) / 2}) rotate(-90)`, class: 'middle',
            }));

        spec.series.forEach(function (series, index) {
            if (series.dashed !== undefined) {
                svg.append(make('path', {d: path(series.dashed, x, y), class: `line dashed series-${index}`}));
            }
            svg.append(make('path', {d: path(series.values, x, y), class: `line series-${index}`}));
        });
        spec.series.forEach(function (series, index) {
            series.values.forEach(function (value, place) {
                if (value !== null) {
                    svg.append(mark(index, x(place), y(value), series.titles[place]));
                }
            });
        });

        const entries = spec.series.map((series, index) => [
            [make('line', {x1: -14, x2: 14, y1: 0, y2: 0, class: `line series-${index}`}), mark(index, 0, 0)], series.name,
        ]);
        if (spec.dashedName !== undefined) {
            entries.push([[make('line', {x1: -14, x2: 14, y1: 0, y2: 0, class: 'line dashed'})], spec.dashedName]);
        }
        container.append(legend(entries));
    }

    /* A line through the values, interrupted where there is none. */
    function path(values, x, y) {
        let drawn = '';
        let pen = 'M';
        values.forEach(function (value, index) {
            if (value === null) {
                pen = 'M';
            } else {
                drawn += `${pen}${x(index).toFixed(1)},${y(value).toFixed(1)}`;
                pen = 'L';
            }
        });
        return drawn;
    }

    coalescing.lines = lines;
})(window.coalescing);
