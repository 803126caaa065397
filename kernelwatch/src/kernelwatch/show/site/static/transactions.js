// The page Transactions: counted memory transactions of the kernels.
'use strict';

page(async function (chosen, display) {
    const index = await loadIndex();
    const counted = ofKind(index, 'counted');
    const name = chosen.machine(index, counted);
    if (name === null) {
        paragraph(display, 'No commit has been counted yet: kernelwatch run');
        return;
    }
    const commit = chosen.commit(index.machines[name], counted);
    const values = await valuesAt(index.machines[name], commit, counted);
    const metrics = counted.map((benchmark) => ({
        benchmark, what: benchmark.title.replace(/^.*: /, ''), found: points(benchmark, values),
    })).filter(({found}) => found.some(({value}) => value !== null));
    const pick = (axis, title, some) => chosen.pick(axis, title, measured(some.flatMap(({found}) => found), axis),
        metrics.map(({benchmark}) => benchmark.chosen[axis]).find(Boolean));
    const picks = {
        dtype: pick('dtype', 'Dtype of the kernels', metrics.filter(({benchmark}) => ofKernels(benchmark))),
        flags: pick('flags', 'Flags', metrics),
    };
    const metric = chosen.pick('metric', 'Metric of the charts', [...new Set(metrics.map(({what}) => what))]);
    chosen.show();
    paragraph(display, 'Counted by executing the compiled PTX on the CPU: exact, and the same on every machine. A request is one ' +
        'load or store of one warp; a sector is 32 bytes, a line of the L1 cache 128.');
    Object.values(Object.groupBy(metrics, ({benchmark}) => benchmark.family)).sort(
        ([one], [other]) => ofKernels(other.benchmark) - ofKernels(one.benchmark)).forEach(
        (columns) => counts(display, index, columns, picks, metric));
});

/* Draw bars by kernel, or by dtype if there is only one place; else lines along the places. The table has all metrics. */
function counts(display, index, columns, picks, metric) {
    const {benchmark, found, what} = columns.find((one) => one.what === metric) || columns[0];
    const {along, own} = benchmark;
    const steps = along === null ? [] : placesOf(found, along);
    const isAlong = !ofKernels(benchmark) && steps.length > 1;
    const axes = [...own, 'dtype', 'flags'].filter((axis) => axis !== benchmark.lines && !(isAlong && axis === along));
    const fixed = fixedAt(benchmark, axes, picks, found);
    const values = (benchmark.lines === null ? [null] : measured(found, benchmark.lines)).map((value) => ({
        name: label(index, benchmark, value || benchmark.kernel), key: value === null ? {} : {[benchmark.lines]: value}}));
    const whats = columns.map((one) => one.what);
    sweep(display, isAlong ? lines : bars, {
        title: titled(benchmark.family, ...isAlong ? [`by ${along}`] : [], fixed), note: benchmark.note,
        measure: {unit: what, of: ({value}) => value, told: (name, value) => `${name}: ${digits(value)} ${benchmark.unit}`},
        cells: ({params}) => columns.map((one) => digits(where(one.found, params)[0]?.value ?? null)),
        ...isAlong ? {
            lines: values.map(({name, key}) => ({name, points: where(found, {...fixed, ...key})})),
            places: steps.map((step) => ({name: step, key: {[along]: step}})), headers: [benchmark.lines, along, ...whats],
        } : {
            lines: [{name: what, points: where(found, fixed)}], places: values,
            headers: [ofKernels(benchmark) ? 'kernel' : benchmark.lines || 'kernel', ...whats],
        },
    });
}
