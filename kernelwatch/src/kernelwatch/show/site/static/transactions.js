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
    const scale = chosen.pick('scale', 'Scale of lines', ['linear', LOG]);
    chosen.show();
    paragraph(display, 'Counted by executing the compiled PTX on the CPU: exact, and the same on every machine. A request is one ' +
        'load or store of one warp; a sector is 32 bytes, a line of the L1 cache 128.');
    Object.values(Object.groupBy(metrics, ({benchmark}) => benchmark.family)).sort(
        ([one], [other]) => ofKernels(other.benchmark) - ofKernels(one.benchmark)).forEach(
        (columns) => counts(display, index, columns, picks, scale));
});

/* Of the metrics of a sweep bars by kernel, or by dtype where there is one place, in a chart for each unit that tells of requests;
   else lines of the first metric along the places. The table has all. */
function counts(display, index, columns, picks, scale) {
    const {benchmark, found, what} = columns[0];
    const {along, own} = benchmark;
    const steps = along === null ? [] : placesOf(found, along);
    const isAlong = !ofKernels(benchmark) && steps.length > 1;
    const axes = [...own, 'dtype', 'flags'].filter((axis) => axis !== benchmark.lines && !(isAlong && axis === along));
    const fixed = fixedAt(benchmark, axes, picks, found);
    const values = (benchmark.lines === null ? [null] : measured(found, benchmark.lines)).map((value) => ({
        name: label(index, benchmark, value || benchmark.kernel), key: value === null ? {} : {[benchmark.lines]: value}}));
    const places = isAlong ? steps.map((step) => ({name: step, key: {[along]: step}})) : values;
    const measure = (unit) => ({of: ({value}) => value, told: (name, value) => `${name}: ${digits(value)} ${unit}`});
    const title = titled(benchmark.family, ...isAlong ? [`by ${along}`] : [], fixed);
    const heads = isAlong ? [benchmark.lines, along] : [ofKernels(benchmark) ? 'kernel' : benchmark.lines || 'kernel'];
    const named = isAlong
        ? values.flatMap(({name, key}) => places.map((place) => ({names: [name, place.name], key: {...key, ...place.key}})))
        : places.map(({name, key}) => ({names: [name], key}));
    const cells = (key) => columns.map((one) => digits(where(one.found, {...fixed, ...key})[0]?.value ?? null));
    const rows = named.map(({names, key}) => [...names, ...cells(key)]).filter((row) => row.slice(heads.length).some(isValue));
    if (rows.length === 0) {
        return;
    }
    const made = table(title, [...heads, ...columns.map((one) => one.what)], rows);
    if (isAlong) {
        const series = seriesOf(values.map(({name, key}) => ({name, points: where(found, {...fixed, ...key})})), places, measure(what));
        figure(display, title, `${benchmark.note} ${what}; the table has the other metrics too.`.trim(), (chart) => lines(chart, {
            label: `${title}: ${what}, one line a ${benchmark.lines}; the table has the values`,
            xTitle: along, yTitle: what, places: steps, series, scale,
        }), made);
        return;
    }
    const units = [...new Set(columns.map((one) => one.benchmark.unit))].filter((unit) => unit.endsWith('/request'));
    figure(display, title, benchmark.note, function (chart) {
        const panels = units.map(() => element('div', {className: 'project-panel'}));
        chart.append(element('div', {className: 'project-panels'}, ...panels)); // a chart takes the width that it finds
        units.forEach(function (unit, at) {
            const series = columns.filter((one) => one.benchmark.unit === unit).flatMap((one) => seriesOf(
                [{name: one.what, points: where(one.found, fixed)}], places, measure(unit)));
            const xTitle = series.length === 1 ? series[0].name : unit;
            bars(panels[at], {
                label: `${title}: ${xTitle} by kernel; the table has the values`, xTitle, places: places.map(({name}) => name), series,
            });
        });
    }, made);
}
