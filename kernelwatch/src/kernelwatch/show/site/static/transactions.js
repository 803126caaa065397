// The page Transactions: what the kernels ask of the memory system, counted; and which source lines ask it.
'use strict';

(function () {
    const {data, view, charts, choices} = window.coalescing;
    view.page(async function (params, display) {
        const index = await data.index();
        const counted = data.ofKind(index, 'counted');
        const machines = choices.machines(index, counted);
        if (machines.length > 0) {
            await commitPart(index, params, display, counted, machines);
        } else {
            view.paragraph(display, 'No commit has been counted yet: make bench');
        }
    });

    async function commitPart(index, params, display, counted, machines) {
        const chosen = choices(params, display);
        const machine = chosen.machine(index, machines, 'counts of machine');
        const commits = choices.commits(index, machine, counted);
        const hash = chosen.add('commit', 'Commit', commits, choices.newest(display, commits, index, counted), 'counts of commit');
        const values = await data.commit(machine, commits.find((option) => option.value === hash).commit);
        const metrics = counted.map((name) => ({
            family: data.family(index.benchmarks[name]),
            benchmark: index.benchmarks[name],
            what: index.benchmarks[name].title.replace(/^.*: /, ''),
            found: data.points(index, values, name),
        })).filter(({found}) => found.some(({value}) => value !== null));
        const every = metrics.flatMap(({found}) => found);
        const preferred = (axis) => metrics.map(({benchmark}) => benchmark.chosen[axis]).find(Boolean);
        const ofKernels = metrics.filter(({benchmark}) => 'kernel' in benchmark.axes).flatMap(({found}) => found);
        const dtype = chosen.among(
            'dtype', 'Dtype of the kernels', data.measured(ofKernels, 'dtype'), preferred('dtype'), 'dtype');
        const flags = chosen.among('flags', 'Flags', data.measured(every, 'flags'), preferred('flags'), 'flags');
        const scale = chosen.scale();
        chosen.show();
        view.paragraph(display, 'Counted by executing the compiled PTX on the CPU: exact, and the same on every machine. A ' +
            'request is one load or store of one warp; a sector is 32 bytes, a line of the L1 cache 128.');
        const families = [...new Set(metrics.map(({family}) => family))];
        const byKernel = (family) => metrics.some((one) => one.family === family && 'kernel' in one.benchmark.axes);
        families.sort((one, other) => byKernel(other) - byKernel(one)).forEach(function (family) {
            const own = metrics.filter((one) => one.family === family);
            const columns = own.map(({what, benchmark, found}) => ({what, benchmark, found: data.where(found, {flags})}));
            (byKernel(family) ? kernels : argument)(display, family, columns, dtype, scale);
        });
    }

    const valueOf = function (found, fixed) {
        const point = data.where(found, fixed)[0];
        return point === undefined ? null : point.value;
    };

    /* Bars by kernel: a chart for each unit that several metrics share or that tells of requests. */
    function kernels(display, family, columns, dtype) {
        const own = data.measured(columns[0].found, 'dtype').includes(dtype) ? dtype : columns[0].benchmark.chosen.dtype;
        const groups = data.measured(columns.flatMap(({found}) => data.where(found, {dtype: own})), 'kernel');
        if (groups.length === 0) {
            return;
        }
        const series = columns.map(({what, benchmark, found}) => ({
            name: what,
            unit: benchmark.unit,
            values: groups.map((kernel) => valueOf(found, {kernel, dtype: own})),
            titles: groups.map((kernel) => `${kernel}: ${charts.digits(valueOf(found, {kernel, dtype: own}))} ${what}`),
        }));
        const title = `${family}, ${own}`;
        const rows = groups.map((kernel, row) => [kernel, ...series.map((one) => charts.digits(one.values[row]))]);
        const units = [...new Set(series.map(({unit}) => unit))].filter((unit) => unit.endsWith('/request'));
        view.figure(display, title, columns[0].benchmark.note, function (chart) {
            const panels = units.map(() => view.element('div', {className: 'project-panel'}));
            chart.append(view.element('div', {className: 'project-panels'}, ...panels)); // a chart takes the width that it finds
            units.forEach(function (unit, at) {
                const shown = series.filter((one) => one.unit === unit);
                const xTitle = shown.length === 1 ? shown[0].name : unit;
                charts.bars(panels[at], {
                    label: `${title}: ${xTitle} by kernel; the table has the values`, xTitle, groups, series: shown,
                });
            });
        }, view.table(title, ['kernel', ...columns.map(({what}) => what)], rows));
    }

    /* Lines along an argument, one a dtype, of the first metric; the table has the others too. */
    function argument(display, family, columns, dtype, scale) {
        const [{what, benchmark, found}] = columns;
        const axis = data.rowAxis(benchmark);
        const places = data.measured(found, axis);
        if (places.length === 0) {
            return;
        }
        const dtypes = data.measured(found, 'dtype');
        const series = dtypes.map((dtype) => ({
            name: dtype,
            values: places.map((place) => valueOf(found, {dtype, [axis]: place})),
            titles: places.map((place) => `${dtype}, ${axis} ${place}: ` +
                `${charts.digits(valueOf(found, {dtype, [axis]: place}))} ${what}`),
        }));
        const rows = dtypes.flatMap((dtype) => places.map((place) => [
            dtype, place, ...columns.map((one) => charts.digits(valueOf(one.found, {dtype, [axis]: place})))]));
        const title = `${family}, by ${axis}`;
        view.figure(display, title, `${what}; the table has the other metrics too.`, (chart) => charts.lines(chart, {
            label: `${title}: ${what}, one line a dtype; the table has the values`,
            xTitle: `${axis}, elements`,
            yTitle: what,
            places,
            series,
            scale,
        }), view.table(title, ['dtype', `${axis}, elements`, ...columns.map((one) => one.what)], rows));
    }
})();
