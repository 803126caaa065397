// The page Transactions: what the kernels ask of the memory system, counted; and which source lines ask it.
'use strict';

$(document).ready(function () {
    const {data, view, svg, lines, bars, choices} = window.coalescing;
    const OF = (name) => `track_counted.${name}`;
    const SECTORS = [
        ['sectors a load request', 'track_load_sectors'],
        ['sectors a store request', 'track_store_sectors'],
    ];
    const CONFLICTS = ['bank conflicts a request', 'track_bank_conflicts'];
    const INSTRUCTIONS = ['instructions a thread', 'track_instructions'];

    async function render(index, params, display) {
        const counted = Object.keys(index.benchmarks).filter((name) => name.startsWith(OF('')));
        const machines = choices.machines(index, counted);
        if (machines.length > 0) {
            await commitPart(index, params, display, counted, machines);
        } else {
            view.paragraph(display, 'No commit has been counted yet: make bench');
        }
        sourcePart(await data.sources(), display);
    }

    async function commitPart(index, params, display, counted, machines) {
        const chosen = choices('transactions', params, display);
        const machine = chosen.machine(index, machines, 'counts of machine');
        const commits = choices.commits(index, machine, counted);
        const hash = chosen.add('commit', 'Commit', commits, commits[0].value, 'counts of commit');
        const values = await data.commit(machine, commits.find((option) => option.value === hash).commit);
        const points = counted.flatMap((name) => data.points(index, values, name));
        const dtype = chosen.among('dtype', 'Dtype of the transposes', data.measured(points, 'dtype'), 'float32', 'dtype');
        const flags = chosen.among('flags', 'Flags', data.measured(points, 'flags'), '-Xptxas -O3', 'flags');
        chosen.show();
        view.paragraph(display, 'Counted by executing the compiled PTX on the CPU: exact, and the same on every machine. A ' +
            'request is one load or store of one warp; a sector is 32 bytes.');
        const at = (name, fixed) => data.where(data.points(index, values, OF(name)), {flags, ...fixed});
        transposes(display, at, dtype);
        copies(display, at, 'OffsetCopy', 'offset');
        copies(display, at, 'StrideCopy', 'stride');
    }

    function transposes(display, at, dtype) {
        const columns = [...SECTORS, CONFLICTS, INSTRUCTIONS].map(function ([name, metric]) {
            return [name, at(`Transpose.${metric}`, {dtype})];
        });
        const groups = data.measured(columns.flatMap(([, found]) => found), 'kernel');
        if (groups.length === 0) {
            return;
        }
        const value = function (found, kernel) {
            const point = data.where(found, {kernel})[0];
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
        const places = data.measured(found[0], name);
        if (places.length === 0) {
            return;
        }
        const dtypes = data.measured(found[0], 'dtype');
        const value = function (points, dtype, place) {
            const point = data.where(points, {dtype, [name]: place})[0];
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
    function sourcePart(sources, display) {
        display.append(
            view.element('h2', {textContent: 'By source line'}),
            view.element('p', {
                textContent: 'The kernels of the checkout that the site was made from. Marked are lines with bank ' +
                    'conflicts, or with far more sectors than their bytes fill.',
            }));
        sources.forEach(function (source) {
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
