// The page Transactions: what the kernels ask of the memory system, counted; and which source lines ask it.
'use strict';

(function () {
    const {data, view, charts, choices, sweep} = window.coalescing;
    view.page(async function (params, display) {
        const index = await data.index();
        const counted = data.ofKind(index, 'counted');
        const machines = choices.machines(index, counted);
        if (machines.length > 0) {
            await commitPart(index, params, display, counted, machines);
        } else {
            view.paragraph(display, 'No commit has been counted yet: kernelwatch run');
        }
    });

    async function commitPart(index, params, display, counted, machines) {
        const chosen = choices(params, display);
        const machine = chosen.machine(index, machines, 'counts of machine');
        const commits = choices.commits(index, machine, counted);
        const hash = chosen.add('commit', 'Commit', commits, choices.newest(display, commits, index, counted), 'counts of commit');
        const {commit} = commits.find((option) => option.value === hash);
        const values = await data.commit(index, machine, commit, counted);
        const metrics = counted.map((name) => ({
            benchmark: index.benchmarks[name],
            what: index.benchmarks[name].title.replace(/^.*: /, ''),
            found: data.points(index, values, name),
        })).filter(({found}) => found.some(({value}) => value !== null));
        const preferred = (axis) => metrics.map(({benchmark}) => benchmark.chosen[axis]).find(Boolean);
        const among = (axis, label, some) => chosen.among(
            axis, label, data.measured(some.flatMap(({found}) => found), axis), preferred(axis), axis);
        const picks = {
            dtype: among('dtype', 'Dtype of the kernels', metrics.filter(({benchmark}) => data.ofKernels(benchmark))),
            flags: among('flags', 'Flags', metrics),
        };
        const scale = chosen.scale();
        chosen.show();
        view.paragraph(display, 'Counted by executing the compiled PTX on the CPU: exact, and the same on every machine. A ' +
            'request is one load or store of one warp; a sector is 32 bytes, a line of the L1 cache 128.');
        const families = [...new Set(metrics.map(({benchmark}) => data.family(benchmark)))];
        families.map((family) => metrics.filter(({benchmark}) => data.family(benchmark) === family)).sort(
            ([{benchmark: one}], [{benchmark: other}]) => data.ofKernels(other) - data.ofKernels(one)).forEach(
            (columns) => figure(display, index, columns, picks, scale));
    }

    /* Of the metrics of a sweep bars by kernel, or by dtype where there is one place, in a chart for each unit that several share
       or that tells of requests; else lines of the first metric along the places. The table has all. */
    function figure(display, index, columns, picks, scale) {
        const {benchmark, found, what} = columns[0];
        const {lines, along} = benchmark;
        const steps = along === null ? [] : data.places(found, along);
        const isAlong = !data.ofKernels(benchmark) && steps.length > 1;
        const axes = [...data.ownAxes(benchmark), 'dtype', 'flags'].filter((axis) => axis !== lines && !(isAlong && axis === along));
        const fixed = data.fixed(benchmark, axes, picks, found);
        const named = (value) => ({name: data.label(index, benchmark, value || benchmark.kernel), key: value === null ? {} : {[lines]: value}});
        const values = (lines === null ? [null] : data.measured(found, lines)).map(named);
        const places = isAlong ? steps.map((step) => ({name: step, key: {[along]: step}})) : values;
        const measure = (unit) => ({of: ({value}) => value, told: (where, value) => `${where}: ${charts.digits(value)} ${unit}`});
        const valueOf = (points, key) => (data.where(points, {...fixed, ...key})[0] || {value: null}).value;
        const cells = (key) => columns.map((one) => charts.digits(valueOf(one.found, key)));
        const metrics = [columns.map((one) => one.what)].flat();
        const title = data.title(data.family(benchmark), ...(isAlong ? [`by ${along}`] : []), fixed);
        const [heads, rows] = isAlong
            ? [[lines, along], values.flatMap((value) => places.map((place) => [value.name, place.name, ...cells({...value.key, ...place.key})]))]
            : [[data.ofKernels(benchmark) ? 'kernel' : lines || 'kernel'], places.map((place) => [place.name, ...cells(place.key)])];
        const kept = rows.filter((row) => row.slice(heads.length).some((cell) => cell !== null));
        const units = [...new Set(columns.map((one) => one.benchmark.unit))].filter((unit) => unit.endsWith('/request'));
        const table = view.table(title, [...heads, ...metrics], kept);
        if (kept.length === 0) {
            return;
        }
        if (isAlong) {
            const series = sweep.drawn(values.map(({name, key}) => ({name, points: data.where(found, {...fixed, ...key})})), places, measure(what));
            view.figure(display, title, `${benchmark.note} ${what}; the table has the other metrics too.`.trim(), (chart) => charts.lines(chart, {
                label: `${title}: ${what}, one line a ${lines}; the table has the values`,
                xTitle: along, yTitle: what, places: steps, series, scale,
            }), table);
            return;
        }
        view.figure(display, title, benchmark.note, function (chart) {
            const panels = units.map(() => view.element('div', {className: 'project-panel'}));
            chart.append(view.element('div', {className: 'project-panels'}, ...panels)); // a chart takes the width that it finds
            units.forEach(function (unit, at) {
                const series = columns.filter((one) => one.benchmark.unit === unit).flatMap((one) => sweep.drawn(
                    [{name: one.what, points: data.where(one.found, fixed)}], places, measure(unit)));
                const xTitle = series.length === 1 ? series[0].name : unit;
                charts.bars(panels[at], {
                    label: `${title}: ${xTitle} by kernel; the table has the values`, xTitle, places: places.map(({name}) => name), series,
                });
            });
        }, table);
    }
})();
