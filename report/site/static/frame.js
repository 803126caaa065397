// The frame of a chart over places that stand side by side: sizes, offsets, commits. Axes, grid, titles, and places by name.
'use strict';

(function (coalescing) {
    const {make, text, ticks, drawing} = coalescing.svg;
    const CHARACTER = 7; // pixels that one takes at most, in figures

    /* spec: label, xTitle, yTitle, places (texts), top and bottom (ends of the y axis; bottom is 0 unless given),
       share: {title}, if a second y axis shows the share of `top` in %. Returns the drawing, and where things lie. */
    function frame(container, spec) {
        const {svg, width, height} = drawing(container, 340, spec.label);
        const left = 62;
        const right = width - (spec.share === undefined ? 14 : 52);
        const [upper, lower] = [22, height - 54];
        const step = (right - left) / spec.places.length;
        const bottom = spec.bottom === undefined ? 0 : spec.bottom;
        const x = (index) => left + step * (index + 0.5);
        const y = (value) => lower - (lower - upper) * Math.max(0, Math.min((value - bottom) / (spec.top - bottom), 1));
        const turned = (place) => ({transform: `translate(${place},${(upper + lower) / 2}) rotate(-90)`, class: 'middle'});

        ticks(spec.top - bottom, 5).forEach(function (above) {
            const value = bottom + above;
            svg.append(
                make('line', {x1: left, x2: right, y1: y(value), y2: y(value), class: 'grid'}),
                text(left - 6, y(value) + 4, String(+value.toPrecision(6)), {class: 'end'}));
        });
        if (spec.share !== undefined) {
            ticks(100, 5).forEach(function (value) {
                svg.append(text(right + 6, y(value * spec.top / 100) + 4, String(value), {}));
            });
            svg.append(text(0, 0, spec.share.title, turned(width - 6)));
        }
        // Long names take turns on two lines; where that is not enough, some are left out.
        const widest = CHARACTER * Math.max(...spec.places.map((place) => place.length));
        const rows = widest > step ? 2 : 1;
        const every = Math.ceil(widest / (step * rows));
        spec.places.forEach(function (place, index) {
            if (index % every === 0) {
                svg.append(text(x(index), lower + 16 + 14 * ((index / every) % rows), place, {class: 'middle'}));
            }
        });
        svg.append(
            make('line', {x1: left, x2: right, y1: lower, y2: lower, class: 'axis'}),
            text((left + right) / 2, height - 6, spec.xTitle, {class: 'middle'}),
            text(0, 0, spec.yTitle, turned(14)));
        return {svg, x, y, step, left, right, upper, lower};
    }

    coalescing.frame = frame;
})(window.coalescing);
