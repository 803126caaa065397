// The page Transactions: counted memory transactions of the kernels.
'use strict';

runPage(async function (choices, display) {
    const index = await loadIndex();
    const counted = filterKind(index, 'counted');
    const name = choices.pickMachine(index, counted);
    if (name === null) {
        addParagraph(display, 'No commit has been counted yet: kernelwatch run');
        return;
    }
    const commit = choices.pickCommit(index.machines[name], counted);
    const values = await loadCommitValues(index.machines[name], commit, counted);
    const metrics = counted.map((benchmark) => ({
        benchmark, metric: benchmark.title.replace(/^.*: /, ''), points: listPoints(benchmark, values),
    })).filter(({points}) => points.some(({value}) => value !== null));
    const pickAxis = (axis, title, swept) => choices.pickOption(axis, title, listMeasured(swept.flatMap(({points}) => points), axis),
        metrics.map(({benchmark}) => benchmark.chosen[axis]).find(Boolean));
    const picks = {
        dtype: pickAxis('dtype', 'Dtype of the kernels', metrics.filter(({benchmark}) => hasKernelLines(benchmark))),
        flags: pickAxis('flags', 'Flags', metrics),
    };
    const drawnMetric = choices.pickOption('metric', 'Metric of the charts', [...new Set(metrics.map(({metric}) => metric))]);
    choices.showControls();
    addParagraph(display, 'Counted by executing the compiled PTX on the CPU: exact, and the same on every machine. A request is one ' +
        'load or store of one warp; a sector is 32 bytes, a line of the L1 cache 128.');
    Object.values(Object.groupBy(metrics, ({benchmark}) => benchmark.family)).sort(
        ([left], [right]) => hasKernelLines(right.benchmark) - hasKernelLines(left.benchmark)).forEach(
        (columns) => drawCounts(display, index, columns, picks, drawnMetric));
});

/* Draw a figure of one metric, with all metrics in its table. Bars compare kernels, or dtypes if the axis `along` has at most one measured
   value. Otherwise lines run along the values of `along`. */
function drawCounts(display, index, columns, picks, drawnMetric) {
    const {benchmark, points, metric} = columns.find((column) => column.metric === drawnMetric) || columns[0];
    const {along, own: ownAxes} = benchmark;
    const steps = along === null ? [] : listPlaces(points, along);
    const isAlong = !hasKernelLines(benchmark) && steps.length > 1;
    const axes = [...ownAxes, 'dtype', 'flags'].filter((axis) => axis !== benchmark.lines && !(isAlong && axis === along));
    const fixed = fixAxes(benchmark, axes, picks, points);
    const values = (benchmark.lines === null ? [null] : listMeasured(points, benchmark.lines)).map((value) => ({
        name: nameLine(index, benchmark, value || benchmark.kernel), key: value === null ? {} : {[benchmark.lines]: value}}));
    const headers = columns.map((column) => column.metric);
    drawSweep(display, isAlong ? drawLines : drawBars, {
        title: joinTitle(benchmark.family, ...isAlong ? [`by ${along}`] : [], fixed), note: benchmark.note,
        measure: {
            unit: metric, convert: ({value}) => value, describe: (name, value) => `${name}: ${formatNumber(value)} ${benchmark.unit}`,
        },
        cells: ({params}) => columns.map((column) => formatNumber(filterPoints(column.points, params)[0]?.value ?? null)),
        ...isAlong ? {
            lines: values.map(({name, key}) => ({name, points: filterPoints(points, {...fixed, ...key})})),
            places: steps.map((step) => ({name: step, key: {[along]: step}})), headers: [benchmark.lines, along, ...headers],
        } : {
            lines: [{name: metric, points: filterPoints(points, fixed)}], places: values,
            headers: [hasKernelLines(benchmark) ? 'kernel' : benchmark.lines || 'kernel', ...headers],
        },
    });
}
