// The page History: one benchmark over the commits, with marks where the machine code changed.
'use strict';

(function () {
    const {data, view, charts, choices, machineCode, overCommits, gpus, machines: beside} = window.coalescing;
    const ALL = 'all, a line each';

    /* How a time in seconds is shown: as so much of what a benchmark knows of its configurations a second, or in µs. */
    const RATES = {'useful GB/s, higher is better': 'useful_bytes', 'GFLOP/s, higher is better': 'flops'};
    const TIMES = 'µs, lower is better';
    const isValue = (value) => value !== null;

    view.page(async function (params, display) {
        const index = await data.index();
        const names = Object.keys(index.benchmarks);
        const machines = choices.machines(index, names);
        if (machines.length === 0) {
            view.paragraph(display, 'Nothing has been measured yet: kernelwatch run');
            return;
        }
        const chosen = choices(params, display);
        const first = machines.find((machine) => timed(index, index.machines[machine]).length > 0) || machines[0];
        const machine = chosen.machine(index, [first, ...machines.filter((one) => one !== first)], 'results of machine');
        const measured = names.filter((name) => machine.commits.some((commit) => data.has(index, commit, [name])));
        const wanted = mostSwept(index, measured);
        const options = measured.map((name) => ({value: name, label: `${index.benchmarks[name].title} (${name})`}));
        const name = chosen.add('benchmark', 'Benchmark', options, wanted, 'results of benchmark');
        const benchmark = index.benchmarks[name];
        const {fixed, picked, own} = configuration(chosen, benchmark);
        const scale = shownAs(chosen, benchmark);
        const from = chosen.among('axis', 'Axis', ['fitted to the values', 'from 0', charts.LOG], 'fitted to the values', 'axis');
        const arch = own || machineCode.arch(chosen, machine);
        const shares = benchmark.type === 'time' ? beside.choice(chosen) : beside.ALONE;
        chosen.show();
        if (shares !== beside.ALONE) {
            await beside.history(display, index, machines, name, {fixed, picked}, shares);
            return;
        }
        machineCode.missing(display, machine);

        const piece = await data.values(machine, benchmark);
        const every = machine.commits.map((_, place) => place);
        const kept = picked.map((line) => ({...line, ...data.series(piece, line.place, every)})).filter(({values}) => values.some(isValue));
        const shown = every.filter((place) => kept.some(({values}) => isValue(values[place])));
        if (shown.length === 0) {
            view.paragraph(display, 'No commit has a value of this configuration.');
            return;
        }
        const codes = await machineCode.codes(machine, arch, shown);
        const commits = shown.map((place) => machine.commits[place]);
        const lines = kept.map((line) => ({
            name: data.label(index, benchmark, line.name),
            values: shown.map((place) => isValue(line.values[place]) ? scale.of(line.values[place], line.place) : null),
            code: codes.of(piece.machine_code[line.place]),
            origins: shown.map((place) => line.origins[place]),
        }));
        const measuredBy = shown.map((place, at) => gpus.ofSeries(index, commits[at], name, kept.map((line) => line.gpus[place])));
        gpus.notice(display, index, measuredBy);
        const changes = machineCode.changes(lines, commits);
        overCommits(display, {
            title: `${benchmark.title}${fixed === '' ? '' : ', ' + fixed}`,
            note: `${commits.length} commits, oldest first; ${scale.unit}. ` + (from === 'from 0' ? '' : 'The axis does not begin at 0. ') +
                told(lines, changes),
            unit: scale.unit, commits, lines, changes, from, gpus: measuredBy.map(gpus.named),
        });
    });

    /* Of some benchmarks the time that is taken of most configurations; the first, where none is a time. */
    function mostSwept(index, names) {
        const size = (name) => data.combinations(index.benchmarks[name].axes).length;
        const times = names.filter((name) => index.benchmarks[name].type === 'time');
        return times.sort((one, other) => size(other) - size(one))[0] || names[0];
    }

    const timed = (index, machine) => Object.keys(index.benchmarks).filter((name) => index.benchmarks[name].type === 'time' &&
        machine.commits.some((commit) => data.has(index, commit, [name])));

    /* The chosen configuration: the lines to be drawn, along the first axis, and the architecture that it is compiled for, if it
       says one. */
    function configuration(chosen, benchmark) {
        const axes = Object.entries(benchmark.axes);
        const picks = axes.map(([axis, values], at) => chosen.among(
            `p-${axis}`, axis, at === 0 && values.length > 1 ? [...values, ALL] : values, benchmark.chosen[axis], axis));
        const every = data.combinations(benchmark.axes);
        const each = every.length / (axes.length === 0 ? 1 : axes[0][1].length);
        const row = every.findIndex((one) => axes.every(([axis], at) => at === 0 || one[axis] === picks[at]));
        const lines = (axes.length === 0 ? [benchmark.title] : axes[0][1]).map((name, at) => ({name, place: at * each + row}));
        const picked = picks.length === 0 || picks[0] === ALL ? lines : lines.filter((line) => line.name === picks[0]);
        return {fixed: picks.slice(1).join(', '), picked, own: picks[axes.findIndex(([axis]) => axis === 'arch')]};
    }

    /* What values are shown as: the unit, and how to come to it from what is stored of the configuration at a place. */
    function shownAs(chosen, benchmark) {
        if (benchmark.type !== 'time') {
            return {unit: benchmark.unit || 'value', of: (value) => value};
        }
        const known = (unit) => benchmark[RATES[unit]].some((amount) => amount !== null);
        const units = [...Object.keys(RATES).filter(known), TIMES];
        const unit = chosen.among('unit', 'Shown as', units, units[0], 'unit');
        const rate = (amount, seconds) => amount === null ? null : amount / seconds / 1e9;
        return {unit, of: (value, place) => unit === TIMES ? value * 1e6 : rate(benchmark[RATES[unit]][place], value)};
    }

    /* What the marks mean, and where there could be none. */
    function told(drawn, changes) {
        const unknown = Math.max(...drawn.map(({code}) => code.filter((one) => one === null).length));
        return drawn.every(({code}) => code.every((one) => one === null)) ? ''
            : `The machine code changed at ${changes.length} of them` + (unknown > 0 ? `, and is not known of ${unknown}` : '') +
                ': only there can a change be the kernel\'s.';
    }
})();
