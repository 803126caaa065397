// A commit's page: the heat maps of its changed kernels, with the verdicts of the review.
'use strict';

page(async function (chosen, display) {
    const [index, machines] = await Promise.all([loadIndex(), piece(`changes/${document.getElementById('content').dataset.commit}`)]);
    display.append(element('h2', {textContent: 'Every configuration'}));
    paragraph(display, HEAT_NOTE);
    machines.forEach(({machine, compared}) => {
        display.append(element('h3', {textContent: index.machines[machine].short}));
        drawHeatMaps(display, index, machine, Object.entries(compared).map(([kernel, rows]) => ({
            kernel, cells: rows.map(([name, values, base, head, verdict]) => {
                const benchmark = index.benchmarks[name];
                const params = Object.fromEntries(Object.keys(benchmark.axes).map((axis, place) => [axis, values[place]]));
                return {benchmark, params, base, head, verdict};
            }),
        })));
    });
});
