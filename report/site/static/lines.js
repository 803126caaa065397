// A chart of lines over places that stand side by side, with marks at places where something changed.
'use strict';

(function (coalescing) {
    const {frame} = coalescing;
    const {make, text, mark, colour, legend} = coalescing.svg;
    const CLOSE = 9; // pixels between places, below which points would run into one another

    /* spec: that of `frame`, and
       series: [{name, values, dashed, titles}] with null where there is no value; `dashed` is what a line compares with,
       dashedName: what the dashed lines are,
       changes: [{place, title}], marked by a line from top to bottom, and changesName: what they are,
       boundary: {before, name}, a line before the place of that index. */
    function lines(container, spec) {
        const at = frame(container, spec);
        const changes = spec.changes === undefined ? [] : spec.changes;
        changes.forEach((change) => at.svg.append(make(
            'g', {class: 'change', transform: `translate(${at.x(change.place)},0)`}, ...flag(at.upper, at.lower),
            make('rect', {x: -5, y: 0, width: 10, height: at.lower, class: 'target'}), make('title', {}, change.title))));
        if (spec.boundary !== undefined) {
            const place = at.left + at.step * spec.boundary.before;
            at.svg.append(
                make('line', {x1: place, x2: place, y1: at.upper - 8, y2: at.lower, class: 'boundary'}),
                text(place, at.upper - 11, spec.boundary.name, {class: 'middle'}));
        }
        spec.series.forEach(function (series, index) {
            if (series.dashed !== undefined) {
                at.svg.append(make('path', {d: path(series.dashed, at), class: `line dashed ${colour(index)}`}));
            }
            at.svg.append(make('path', {d: path(series.values, at), class: `line ${colour(index)}`}));
        });
        (at.step < CLOSE ? strips : points)(at, spec);
        container.append(legend(entries(spec, changes)));
    }

    const flag = (upper, lower) => [
        make('line', {x1: 0, x2: 0, y1: upper, y2: lower}), make('path', {d: `M0,${upper}l-5,-9h10z`}),
    ];

    function points(at, spec) {
        spec.series.forEach((series, index) => series.values.forEach(function (value, place) {
            if (value !== null) {
                at.svg.append(mark(index, at.x(place), at.y(value), series.titles[place]));
            }
        }));
    }

    /* Where points would run into one another, a place says as a whole what is there. */
    function strips(at, spec) {
        spec.places.forEach(function (name, place) {
            const titles = spec.series.filter((series) => series.values[place] !== null).map((series) => series.titles[place]);
            at.svg.append(make(
                'rect',
                {x: at.x(place) - at.step / 2, y: at.upper, width: at.step, height: at.lower - at.upper, class: 'target'},
                make('title', {}, titles.join('\n'))));
        });
    }

    function entries(spec, changes) {
        const found = spec.series.map((series, index) => [
            [make('line', {x1: -14, x2: 14, y1: 0, y2: 0, class: `line ${colour(index)}`}), mark(index, 0, 0)], series.name,
        ]);
        if (spec.dashedName !== undefined) {
            found.push([[make('line', {x1: -14, x2: 14, y1: 0, y2: 0, class: 'line dashed'})], spec.dashedName]);
        }
        if (changes.length > 0) {
            found.push([[make('g', {class: 'change'}, ...flag(2, 7))], spec.changesName]);
        }
        return found;
    }

    /* A line through the values, interrupted where there is none. */
    function path(values, {x, y}) {
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
