// The page Transactions: what the kernels ask of the memory system, counted.
'use strict';

page(async function (chosen, display) {
    const index = await piece('index');
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
    chosen.show();
    paragraph(display, 'Counted by executing the compiled PTX on the CPU: exact, and the same on every machine. A request is one ' +
        'load or store of one warp; a sector is 32 bytes, a line of the L1 cache 128.');
    Object.values(Object.groupBy(metrics, ({benchmark}) => benchmark.family)).sort(
        ([one], [other]) => ofKernels(other.benchmark) - ofKernels(one.benchmark)).forEach(
        (columns) => counts(display, index, columns, picks));
});

/* Of the metrics of a sweep bars by kernel, or by dtype where there is one place, in a chart for each unit that tells of requests;
   else lines of the first metric along the places. The table has all. */
function counts(display, index, columns, picks) {
    const {benchmark, found, what} = columns[0];
    const {along, own} = benchmark;
    const steps = along === null ? [] : placesOf(found, along);
    const isAlong = !ofKernels(benchmark) && steps.length > 1;
    const axes = [...own, 'dtype', 'flags'].filter((axis) => axis !== benchmark.lines && !(isAlong && axis === along));
    const fixed = fixedAt(benchmark, axes, picks, found);
    const values = (benchmark.lines === null ? [null] : measured(found, benchmark.lines)).map((value) => ({
        name: label(index, benchmark, value || benchmark.kernel), key: value === null ? {} : {[benchmark.lines]: value}}));
    const measure = (unit) => ({
        unit, of: ({value}) => value, told: (name, value) => `${name}: ${digits(value)} ${unit}`});
    const whats = columns.map((one) => one.what);
    const cells = ({params}) => columns.map((one) => digits(where(one.found, params)[0]?.value ?? null));
    if (isAlong) {
        sweep(display, lines, {
            title: titled(benchmark.family, `by ${along}`, fixed), measure: measure(what), cells,
            note: `${benchmark.note} ${what}; the table has the other metrics too.`.trim(),
            lines: values.map(({name, key}) => ({name, points: where(found, {...fixed, ...key})})),
            places: steps.map((step) => ({name: step, key: {[along]: step}})), headers: [benchmark.lines, along, ...whats],
        });
        return;
    }
    const title = titled(benchmark.family, fixed);
    const rows = values.map(({name, key}) => [name, ...cells({params: {...fixed, ...key}})]).filter((row) => row.slice(1).some(isValue));
    if (rows.length === 0) {
        return;
    }
    const units = [...new Set(columns.map((one) => one.benchmark.unit))].filter((unit) => unit.endsWith('/request'));
    figure(display, title, benchmark.note, function (chart) {
        const panels = units.map(() => element('div', {className: 'project-panel'}));
        chart.append(element('div', {className: 'project-panels'}, ...panels)); // a chart takes the width that it finds
        units.forEach(function (unit, at) {
            const series = columns.filter((one) => one.benchmark.unit === unit).flatMap((one) => seriesOf(
                [{name: one.what, points: where(one.found, fixed)}], values, measure(unit)));
            const xTitle = series.length === 1 ? series[0].name : unit;
            bars(panels[at], {
                label: `${title}: ${xTitle} by kernel; the table has the values`, xTitle, places: values.map(({name}) => name), series,
            });
        });
    }, table(title, [ofKernels(benchmark) ? 'kernel' : benchmark.lines || 'kernel', ...whats], rows));
}
