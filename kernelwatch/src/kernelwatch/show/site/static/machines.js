// Machines beside each other, on the pages Bandwidth and History: as a share of what each one could do.
'use strict';

(function (coalescing) {
    const {data, view, charts, choices} = coalescing;
    const [ALONE, PEAK, COPY] = ['one alone', 'all, % of each one\'s peak', 'all, % of each one\'s copy'];

    const choice = (chosen) => chosen.among('machines', 'Machines', [ALONE, PEAK, COPY], ALONE, 'choice of machines');

    /* The benchmark that holds how many copies of the same bytes a time is. */
    const control = (name) => `track_control.${name.split('.')[1]}.track_copy_ratio`;

    /* The share in % of a time of so many useful bytes, of the peak or, by `ratio`, of a copy; null where either is missing. */
    function share(what, commit, seconds, bytes, ratio) {
        if (COPY.endsWith(what)) {
            return ratio === null || ratio === undefined ? null : 100 / ratio;
        }
        const known = [seconds, bytes, commit.peak_bytes_per_second].every((one) => one !== null && one !== undefined);
        return known ? 100 * bytes / seconds / commit.peak_bytes_per_second : null;
    }

    const told = (series, where, value) => value === null ? null : `${series}, ${where}: ${charts.digits(value)} %`;

    /* The figures of Bandwidth, of each machine's newest commit that has most; of kernels with `flags`, and of one size and dtype each. */
    async function bandwidth(display, index, names, timed, chosen, {flags, size, dtype}) {
        const what = chosen.replace('all, ', '');
        const machines = await Promise.all(names.map(async function (name) {
            const machine = {name, ...index.machines[name]};
            const {commit} = choices.fullest(choices.commits(index, machine, timed), index, timed);
            return {name, commit, values: await data.commit(machine, commit)};
        }));
        view.paragraph(display, machines.map(({name, commit}) => `${name} at ${choices.short(commit)}`).join(' · '));
        // Of products, which compute more than they move, such a share would say nothing.
        timed.filter((name) => !data.computes(index.benchmarks[name])).forEach(function (name) {
            const benchmark = index.benchmarks[name];
            const axis = 'kernel' in benchmark.axes ? 'kernel' : data.rowAxis(benchmark);
            const other = data.sizeAxis(benchmark);
            const wanted = {
                dtype, flags, ...(axis === 'kernel' ? {[other]: benchmark.axes[other].includes(size) ? size : benchmark.chosen[other]} : {}),
            };
            const fixed = Object.fromEntries(Object.entries(wanted).filter(([key]) => key in benchmark.axes).map(
                ([key, value]) => [key, benchmark.axes[key].includes(value) ? value : benchmark.chosen[key]]));
            const places = benchmark.axes[axis];
            const series = machines.map(function ({name: machine, commit, values}) {
                const found = data.where(data.points(index, values, name), fixed);
                const ratios = data.where(data.points(index, values, control(name)), fixed);
                const at = (some, place) => data.where(some, {[axis]: place})[0] || {value: null};
                const shares = places.map((place) => share(
                    what, commit, at(found, place).value, at(found, place).usefulBytes, at(ratios, place).value));
                return {name: machine, values: shares, titles: shares.map((value, row) => told(machine, places[row], value))};
            }).filter(({values}) => values.some((value) => value !== null));
            if (series.length === 0) {
                return;
            }
            const title = [data.family(benchmark), ...Object.values(fixed)].join(', ');
            const rows = places.map((place, row) => [place, ...series.map((one) => charts.digits(one.values[row]))]);
            const label = `${title}: ${what}; the table has the values`;
            view.figure(display, title, benchmark.note, (chart) => axis === 'kernel'
                ? charts.bars(chart, {label, xTitle: what, groups: places, series})
                : charts.lines(chart, {label, xTitle: axis, yTitle: what, places, series}),
            view.table(title, [axis, ...series.map((one) => `${one.name}, %`)], rows));
        });
    }

    /* The figure of History: of a benchmark's `picked` lines the shares on every machine over all of their commits. */
    async function history(display, index, names, name, {fixed, row, picked}, chosen) {
        const what = chosen.replace('all, ', '');
        const benchmark = index.benchmarks[name];
        const found = {};
        const series = (await Promise.all(names.map(async function (machine) {
            const known = index.machines[machine];
            const load = (one) => known.commits.some((commit) => data.has(index, commit, [one]))
                ? data.series(known, index.benchmarks[one], row) : null;
            const [times, ratios] = await Promise.all([load(name), load(control(name))]);
            return times === null ? [] : picked.map(function (line) {
                const shares = {};
                known.commits.forEach(function (commit, place) {
                    const value = share(what, commit, times.values[line.at][place], benchmark.useful_bytes[line.place],
                        ratios === null ? null : ratios.values[line.at][place]);
                    if (value !== null) {
                        shares[commit.commit] = value;
                        found[commit.commit] = commit;
                    }
                });
                return {name: picked.length === 1 ? machine : `${machine}, ${line.name}`, shares};
            });
        }))).flat().filter(({shares}) => Object.keys(shares).length > 0);
        if (series.length === 0) {
            view.paragraph(display, 'No commit has a value of this configuration.');
            return;
        }
        const commits = Object.values(found).sort((one, other) => one.date - other.date);
        const lines = series.map(({name: line, shares}) => {
            const values = commits.map(({commit}) => shares[commit] === undefined ? null : shares[commit]);
            return {name: line, values, titles: values.map((value, at) => told(line, choices.short(commits[at]), value))};
        });
        const title = [benchmark.title, picked.length === 1 ? picked[0].name : null, fixed].filter(Boolean).join(', ');
        const rows = commits.map((commit, at) => [
            choices.short(commit), choices.day(commit), ...lines.map(({values}) => charts.digits(values[at])),
        ]).reverse();
        view.figure(display, title, `${commits.length} commits by date; ${what}. Marks of changed machine code: one machine alone.`,
            (chart) => charts.lines(chart, {
                label: `${title}: ${what}; the table has the values`, xTitle: 'commit', yTitle: what,
                places: commits.map(choices.short), series: lines,
            }), view.table(`${title}, newest first`, ['commit', 'date', ...lines.map((line) => `${line.name}, %`)], rows));
    }

    coalescing.machines = {choice, bandwidth, history, ALONE};
})(window.coalescing);
