// A commit's page: the heat maps of its changed kernels, with the verdicts of the review.
'use strict';

/** List the cells of a benchmark's heat maps, from verdict -> [configurations, packed values before, packed values after]. A
 * configuration is its index in `listCombinations`, or the list of the values of its axes.
 * @type {(benchmark: Benchmark, verdicts: Object<string, any[]>) => object[]} */
function listCells(benchmark, verdicts) {
    const combinations = listCombinations(benchmark.axes);
    const nameValues = (values) => Object.fromEntries(Object.keys(benchmark.axes).map((axis, index) => [axis, values[index]]));
    return Object.entries(verdicts).flatMap(([verdict, [places, ...texts]]) => {
        const [base, head] = texts.map((text) => parseNumbers(text, benchmark));
        return places.map((place, index) => ({
            benchmark, params: Number.isInteger(place) ? combinations[place] : nameValues(place),
            base: base[index], head: head[index], verdict,
        }));
    });
}

runPage(async function (choices, display) {
    const {commit} = document.getElementById('content').dataset;
    const [index, machines] = await Promise.all([loadIndex(), loadPiece(`changes/${commit}`)]);
    display.append(makeElement('h2', {textContent: 'Every configuration'}));
    addParagraph(display, HEAT_NOTE);
    machines.forEach(({machine, compared}) => {
        display.append(makeElement('h3', {textContent: index.machines[machine].short}));
        drawHeatMaps(display, index, machine, Object.entries(compared).map(([kernel, benchmarks]) => ({
            kernel, cells: Object.entries(benchmarks).flatMap(([name, verdicts]) => listCells(index.benchmarks[name], verdicts)),
        })));
    });
});
