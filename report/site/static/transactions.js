// The page Transactions: what the kernels ask of the memory system, counted; and which source lines ask it.
'use strict';

$(document).ready(function () {
    const {data: lookup, view, svg, lines, bars} = window.coalescing;
    const OF = (name) => `track_counted.${name}`;
    const SECTORS = [
        ['sectors a load request', 'track_load_sectors'],
        ['sectors a store request', 'track_store_sectors'],
    ];
    const CONFLICTS = ['bank conflicts a request', 'track_bank_conflicts'];
    const INSTRUCTIONS = ['instructions a thread', 'track_instructions'];

    function render(data, params, display) {
        const counted = Object.keys(data.benchmarks).filter((name) => name.startsWith(OF('')));
        const machines = view.machines(data, counted);
        if (machines.length > 0) {
            commitPart(data, params, display, counted, machines);
        } else {
            display.append(view.element('p', {textContent: 'No commit has been counted yet.'}));
        }
        sourcePart(data, display);
        view.restoreFocus();
    }

    function commitPart(data, params, display, counted, machines) {
        const machine = view.chosen(params, 'machine', machines, machines[0].value, display, 'counts of machine');
        const commits = view.commits(data, machine, counted);
        const hash = view.chosen(params, 'commit', commits, commits[0].value, display, 'counts of commit');
        const commit = commits.find((option) => option.value === hash).commit;
        const points = counted.flatMap((name) => lookup.points(data, commit, name));
        const choose = function (key, wanted) {
            const values = lookup.measured(points, key);
            const options = values.map((value) => ({value, label: value}));
            const otherwise = values.includes(wanted) ? wanted : values[0];
            return {key, options, value: view.chosen(params, key, options, otherwise, display, key)};
        };
        const [dtype, flags] = [choose('dtype', 'float32'), choose('flags', '-Xptxas -O3')];
        display.append(view.controls('transactions', [
            {key: 'machine', label: 'Machine', options: machines, value: machine},
            {key: 'commit', label: 'Commit', options: commits, value: hash},
            {label: 'Dtype of the transposes', ...dtype},
            {label: 'Flags', ...flags},
        ]), view.element('p', {
            textContent: 'Counted by executing the compiled PTX on the CPU: exact, and the same on every machine. A ' +
                'request is one load or store of one warp; a sector is 32 bytes.',
        }));
        const at = (name, fixed) => lookup.where(lookup.points(data, commit, OF(name)), {flags: flags.value, ...fixed});
        transposes(display, at, dtype.value);
        copies(display, at, 'OffsetCopy', 'offset');
        copies(display, at, 'StrideCopy', 'stride');
    }

    function transposes(display, at, dtype) {
        const columns = [...SECTORS, CONFLICTS, INSTRUCTIONS].map(function ([name, metric]) {
            return [name, at(`Transpose.${metric}`, {dtype})];
        });
        const groups = lookup.measured(columns.flatMap(([, found]) => found), 'kernel');
        if (groups.length === 0) {
            return;
        }
        const value = function (found, kernel) {
            const point = lookup.where(found, {kernel})[0];
            return point === undefined ? null : point.value;
        };
        const series = columns.map(([name, found]) => ({
            name,
            values: groups.map((kernel) => value(found, kernel)),
            titles: groups.map((kernel) => `${kernel}: ${svg.figure(value(found, kernel))} ${name}`),
        }));
        const rows = groups.map((kernel, row) => [kernel, ...series.map((one) => svg.figure(one.values[row]))]);
        const title = `Transposes of 1000 x 700, ${dtype}`;
        const draw = function (chart, shown, xTitle) {
            const top = svg.roundUp(Math.max(...shown.flatMap((one) => one.values), 1));
            bars(chart, {label: `${title}: ${xTitle} by kernel; the table has the values`, xTitle, groups, top, series: shown});
        };
        view.figure(display, title, 'Fewer are better. Rows of 700 elements begin anywhere in a sector.', function (chart) {
            draw(chart, series.slice(0, 2), 'sectors a request');
            draw(chart, series.slice(2, 3), 'bank conflicts a shared memory request');
        }, view.table(title, ['kernel', ...columns.map(([name]) => name)], rows));
    }

    function copies(display, at, benchmark, name) {
        const found = SECTORS.map(([, metric]) => at(`${benchmark}.${metric}`, {}));
        const places = lookup.measured(found[0], name);
        if (places.length === 0) {
            return;
        }
        const dtypes = lookup.measured(found[0], 'dtype');
        const value = function (points, dtype, place) {
            const point = lookup.where(points, {dtype, [name]: place})[0];
            return point === undefined ? null : point.value;
        };
        const series = dtypes.map((dtype) => ({
            name: dtype,
            values: places.map((place) => value(found[0], dtype, place)),
            titles: places.map(
                (place) => `${dtype}, ${name} ${place}: ${svg.figure(value(found[0], dtype, place))} sectors a load request`),
        }));
        const rows = dtypes.flatMap((dtype) => places.map(
            (place) => [dtype, place, ...found.map((points) => svg.figure(value(points, dtype, place)))]));
        const title = `Copy by ${name}`;
        view.figure(display, title, 'Sectors a load request; the table has the stores too.', (chart) => lines(chart, {
            label: `${title}: sectors a load request by ${name}, one line a dtype; the table has the values`,
            xTitle: `${name}, elements`,
            yTitle: 'sectors a load request',
            places,
            series,
            top: svg.roundUp(Math.max(...series.flatMap((one) => one.values))),
        }), view.table(title, ['dtype', `${name}, elements`, ...SECTORS.map(([what]) => what)], rows));
    }

    /* The kernels as they were when the site was made: the lines, and under each what it costs. */
    function sourcePart(data, display) {
        display.append(
            view.element('h2', {textContent: 'By source line'}),
            view.element('p', {
                textContent: 'The kernels of the checkout that the site was made from. Marked are lines with bank ' +
                    'conflicts, or with far more sectors than their bytes fill.',
            }));
        data.sources.forEach(function (source) {
            const launch = Object.entries(source.arguments).map(([name, value]) => `${name}=${value}`).join(' ');
            const code = view.element('pre', {tabIndex: 0});
            source.lines.forEach(function (line) {
                code.append(view.element('span', {
                    className: line.startsWith('>>') ? 'costly' : /^\s+\^ /.test(line) ? 'cost' : '',
                    textContent: line + '\n',
                }));
            });
            const parts = [
                view.element('summary', {}, view.element('code', {textContent: source.kernel}),
                    `, ${source.file}, ${source.dtype}, ${launch}`),
                ...(source.problem === null ? [] : [view.element('p', {
                    className: 'project-notice', textContent: `Not counted: ${source.problem}`,
                })]),
                code,
            ];
            display.append(view.element('details', {open: true, className: 'project-source'}, ...parts));
        });
    }

    view.register('transactions', 'Transactions', render);
});
