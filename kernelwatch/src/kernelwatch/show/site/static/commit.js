// A commit's page: the heat maps of its changed kernels, with the verdicts of the review.
'use strict';

runPage(async function (choices, display) {
    const {commit} = document.getElementById('content').dataset;
    const [index, machines] = await Promise.all([loadIndex(), loadPiece(`changes/${commit}`)]);
    display.append(makeElement('h2', {textContent: 'Every configuration'}));
    addParagraph(display, HEAT_NOTE);
    machines.forEach(({machine, compared}) => {
        display.append(makeElement('h3', {textContent: index.machines[machine].short}));
        drawHeatMaps(display, index, machine, Object.entries(compared).map(([kernel, rows]) => ({
            kernel, cells: rows.map(([name, values, base, head, verdict]) => {
                const benchmark = index.benchmarks[name];
                const params = Object.fromEntries(Object.keys(benchmark.axes).map((axis, place) => [axis, values[place]]));
                return {benchmark, params, base, head, verdict};
            }),
        })));
    });
});
