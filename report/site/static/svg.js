// What the charts share. Colours, marks and line styles are classes of project.css: those of Okabe and Ito (2008), which
// the colour-blind tell apart; every series has a mark of its own besides.
'use strict';

(function (coalescing) {
    const SPACE = 'http://www.w3.org/2000/svg';

    function make(name, attributes, ...children) {
        const made = document.createElementNS(SPACE, name);
        Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
        made.append(...children);
        return made;
    }

    function text(x, y, content, attributes) {
        return make('text', {x, y, ...attributes}, content);
    }

    /* Round steps from 0 to at most `top`, about `count` of them. */
    function ticks(top, count) {
        const rough = top / count;
        const power = Math.pow(10, Math.floor(Math.log10(rough)));
        const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
        return Array.from({length: Math.floor(top / step + 1e-9) + 1}, (_, index) => index * step);
    }

    /* The end of an axis that holds `largest`: a round number. */
    function roundUp(largest) {
        const steps = ticks(largest * 1.0001 || 1, 5);
        const step = steps.length > 1 ? steps[1] : 1;
        return Math.ceil(largest / step) * step || 1;
    }

    /* Both ends of an axis that holds all values, and little more: round numbers. */
    function fitted(values) {
        const [least, most] = [Math.min(...values), Math.max(...values)];
        const step = ticks((most - least || Math.abs(most) || 1) * 1.2, 5)[1];
        return {bottom: Math.floor(least / step - 0.1) * step, top: Math.ceil(most / step + 0.1) * step};
    }

    const SHAPES = [
        'M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0',
        'M-3.5,-3.5h7v7h-7z',
        'M0,-5L4.5,3.5h-9z',
        'M0,-5L5,0L0,5L-5,0z',
        'M0,5L4.5,-3.5h-9z',
        'M-1.5,-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z',
        'M-5,-2h10v4h-10z',
        'M-2,-5h4v10h-4z',
    ];

    /* The class that gives a series its colour. */
    const colour = (series) => `series-${series % SHAPES.length}`;

    /* The mark of a series; a point's says on hovering what it is. */
    function mark(series, x, y, title) {
        const shape = make('path', {d: SHAPES[series % SHAPES.length], class: `mark ${colour(series)}`});
        const group = make('g', {transform: `translate(${x},${y})`}, shape);
        if (title !== undefined) {
            group.append(make('circle', {r: 9, class: 'target'}), make('title', {}, title));
        }
        return group;
    }

    /* The series' names under a chart: pairs of a sample's elements and a name. */
    function legend(entries) {
        const list = coalescing.view.element('ul', {className: 'project-legend'});
        entries.forEach(function ([sample, name]) {
            const picture = make('svg', {width: 28, height: 14, viewBox: '-14 -7 28 14', 'aria-hidden': 'true'}, ...sample);
            list.append(coalescing.view.element('li', {}, picture, coalescing.view.element('span', {textContent: name})));
        });
        return list;
    }

    /* A drawing as wide as its container, within reason, with a description for those who do not see it. */
    function drawing(container, height, label) {
        const width = Math.max(260, Math.min(container.clientWidth, 760));
        const svg = make('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label});
        container.append(svg);
        return {svg, width, height};
    }

    /* Two digits or more, no more than needed. */
    function figure(value) {
        return value === null ? null : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
    }

    coalescing.svg = {make, text, ticks, roundUp, fitted, colour, mark, legend, drawing, figure};
})(window.coalescing);
