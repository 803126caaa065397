// Machines beside each other, on the pages Bandwidth and History: as a share of what each one could do.
'use strict';

(function (coalescing) {
    const {data, view, charts, choices, sweep, overCommits} = coalescing;
    const [ALONE, PEAK, COPY] = ['one alone', 'all, % of each one\'s peak', 'all, % of each one\'s copy'];

    const choice = (chosen) => chosen.among('machines', 'Machines', [ALONE, PEAK, COPY], ALONE, 'choice of machines');

    /* The share in % of a time of so many useful bytes, of the peak or, by `ratio`, of a copy; null where either is missing. */
    function share(what, commit, seconds, bytes, ratio) {
        if (COPY.endsWith(what)) {
            return ratio === null || ratio === undefined ? null : 100 / ratio;
        }
        const known = [seconds, bytes, commit.peak_bytes_per_second].every((one) => one !== null && one !== undefined);
        return known ? 100 * bytes / seconds / commit.peak_bytes_per_second : null;
    }

    /* The figures of Bandwidth, of each machine's newest commit that has most, at one place, flag set and dtype each. */
    async function bandwidth(display, index, names, timed, chosen, picks) {
        const what = chosen.replace('all, ', '');
        // Of products, which compute more than they move, such a share would say nothing.
        const moving = timed.filter((name) => !data.computes(index.benchmarks[name]));
        const machines = await Promise.all(names.map(async function (name) {
            const machine = {name, ...index.machines[name]};
            const {commit} = choices.fullest(choices.commits(index, machine, timed), index, timed);
            const controls = moving.map((one) => index.benchmarks[one].control).filter((one) => one in index.benchmarks);
            return {name, commit, values: await data.commit(index, machine, commit, [...moving, ...controls])};
        }));
        view.paragraph(display, machines.map(({name, commit}) => `${name} at ${choices.short(commit)}`).join(' · '));
        moving.forEach(function (name) {
            const benchmark = index.benchmarks[name];
            const axis = data.ofKernels(benchmark) ? benchmark.lines : benchmark.along || benchmark.lines;
            const all = Object.fromEntries(machines.map((one) => [one.name, data.points(index, one.values, name)]));
            const fixed = data.fixed(benchmark, [...data.ownAxes(benchmark), 'dtype', 'flags'].filter((one) => one !== axis),
                picks, Object.values(all).flat());
            const measure = {
                unit: what, axis: {}, told: (where, value) => `${where}: ${charts.digits(value)} %`,
                of: ({share: value}) => value,
            };
            const lines = machines.map(({name: machine, commit, values}) => {
                const ratios = data.points(index, values, benchmark.control);
                return {name: machine, points: data.where(all[machine], fixed).map((point) => ({...point, share: share(
                    what, commit, point.value, point.usefulBytes, (data.where(ratios, point.params)[0] || {value: null}).value)}))};
            });
            const places = axis === null ? [{name: benchmark.kernel, key: {}}] : benchmark.axes[axis].map((value) => ({
                name: data.ofKernels(benchmark) ? data.label(index, benchmark, value) : value, key: {[axis]: value}}));
            sweep(display, axis === benchmark.along ? 'lines' : 'bars', {
                title: data.title(data.family(benchmark), fixed), note: benchmark.note, places, lines, measure,
                headers: [axis === benchmark.along ? 'machine' : axis, axis === benchmark.along ? axis : 'machine', '%'],
                cells: (point) => [charts.digits(point.share)],
            });
        });
    }

    /* The figure of History: of a benchmark's `picked` lines the shares on every machine over all of their commits. */
    async function history(display, index, names, name, {fixed, picked}, chosen) {
        const what = chosen.replace('all, ', '');
        const benchmark = index.benchmarks[name];
        const lines = (await Promise.all(names.map(async function (machine) {
            const known = index.machines[machine];
            const every = known.commits.map((_, place) => place);
            const load = async (one) => known.commits.some((commit) => data.has(index, commit, [one]))
                ? data.values(known, index.benchmarks[one]) : {};
            const [times, ratios] = await Promise.all([load(name), load(benchmark.control)]);
            return picked.map((line) => {
                const [seconds, ratio] = [times, ratios].map((piece) => data.series(piece, line.place, every).values);
                const shares = known.commits.map((commit, place) => share(
                    what, commit, seconds[place], benchmark.useful_bytes[line.place], ratio[place]));
                return {
                    name: picked.length === 1 ? machine : `${machine}, ${data.label(index, benchmark, line.name)}`,
                    found: known.commits.map((commit, place) => ({commit, value: shares[place]})).filter(({value}) => value !== null),
                };
            });
        }))).flat().filter(({found}) => found.length > 0);
        if (lines.length === 0) {
            view.paragraph(display, 'No commit has a value of this configuration.');
            return;
        }
        const every = Object.fromEntries(lines.flatMap(({found}) => found.map(({commit}) => [commit.commit, commit])));
        const commits = Object.values(every).sort((one, other) => one.date - other.date);
        overCommits(display, {
            title: [benchmark.title, picked.length === 1 ? picked[0].name : null, fixed].filter(Boolean).join(', '),
            note: `${commits.length} commits by date; ${what}. Marks of changed machine code: one machine alone.`,
            unit: '%', commits, from: 'from 0',
            lines: lines.map(({name: line, found}) => ({name: line, values: commits.map(
                ({commit}) => (found.find((one) => one.commit.commit === commit) || {value: null}).value)})),
        });
    }

    coalescing.machines = {choice, bandwidth, history, ALONE};
})(window.coalescing);
