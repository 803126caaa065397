// A commit's page: the heat maps of its changed kernels, with the verdicts of the review.
'use strict';

/* The cells of a benchmark: places, and values before and after, by verdict. A place that is no number has the values of the axes. */
function cellsOf(benchmark, verdicts) {
    const all = combinations(benchmark.axes);
    const nameValues = (values) => Object.fromEntries(Object.keys(benchmark.axes).map((axis, at) => [axis, values[at]]));
    return Object.entries(verdicts).flatMap(([verdict, [places, ...texts]]) => {
        const [base, head] = texts.map((text) => numbersOf(text, benchmark));
        return places.map((place, at) => ({
            benchmark, params: Number.isInteger(place) ? all[place] : nameValues(place), base: base[at], head: head[at], verdict,
        }));
    });
}

page(async function (chosen, display) {
    const [index, machines] = await Promise.all([loadIndex(), piece(`changes/${document.getElementById('content').dataset.commit}`)]);
    display.append(element('h2', {textContent: 'Every configuration'}));
    paragraph(display, HEAT_NOTE);
    machines.forEach(({machine, compared}) => {
        display.append(element('h3', {textContent: index.machines[machine].short}));
        drawHeatMaps(display, index, machine, Object.entries(compared).map(([kernel, benchmarks]) => ({
            kernel, cells: Object.entries(benchmarks).flatMap(([name, verdicts]) => cellsOf(index.benchmarks[name], verdicts)),
        })));
    });
});
