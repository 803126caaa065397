// The page Resources: what the compiler made of each kernel, commit by commit.
'use strict';

(function (coalescing) {
    const {data, view, charts, choices, downloads, machineCode} = coalescing;

    async function render(index, chosen, display) {
        const names = data.ofKind(index, 'compiled');
        const machines = choices.machines(index, names);
        if (machines.length === 0) {
            view.paragraph(display, 'No commit has been compiled yet: make bench');
            return;
        }
        const machine = chosen.machine(index, machines, 'resources of machine');
        const [kernels, ...others] = Object.entries(index.benchmarks[names[0]].axes);
        const picks = Object.fromEntries(others.map(([axis, values]) => [
            axis, chosen.among(axis, axis, values, index.benchmarks[names[0]].chosen[axis], axis)]));
        chosen.show();
        view.paragraph(display, 'As ptxas reports them, on any machine, with or without a GPU. Fewer are better. The flag marks ' +
            'a commit whose machine code of some kernel, the cubin, is another than before.');
        machineCode.missing(display, machine);

        const shown = machine.commits.map((_, place) => place).filter(
            (place) => data.has(index, machine.commits[place], names));
        const commits = shown.map((place) => machine.commits[place]);
        const codes = await machineCode.codes(machine, picks.arch, shown);
        const code = kernels[1].map((kernel) => ({
            name: kernel, code: codes.of(`${kernel} ${picks.dtype} ${picks.flags}`),
        }));
        const changes = machineCode.changes(code, commits);
        const title = (what) => `${what}, ${Object.values(picks).join(', ')}`;
        for (const name of names) {
            const benchmark = index.benchmarks[name];
            const row = data.combinations(Object.fromEntries(others)).findIndex(
                (one) => Object.entries(picks).every(([axis, value]) => one[axis] === value));
            const measured = machine.commits.some((commit) => data.has(index, commit, [name]));
            if (measured) {
                figure(display, title(benchmark.title), benchmark.unit, await data.series(machine, benchmark, row),
                    kernels[1], shown, commits, changes);
            }
        }
        hashes(display, title('Machine code: SHA-256 of the cubin'), code, commits);
    }

    function figure(display, title, unit, piece, kernels, shown, commits, changes) {
        const series = kernels.map(function (name, at) {
            const values = shown.map((place) => piece.values[at][place]);
            const titles = values.map((value, place) => `${choices.short(commits[place])}, ${name}: ${value} ${unit}`);
            return {name, values, titles};
        }).filter((line) => line.values.some((value) => value !== null));
        if (series.length === 0) {
            return;
        }
        const rows = commits.map((commit, place) => [
            choices.short(commit), choices.day(commit), ...series.map((line) => line.values[place]),
        ]).reverse();
        const drawn = series.filter(({values}) => new Set(values.filter((value) => value !== null)).size > 1);
        const made = view.table(`${title}, ${unit}, newest first`, ['commit', 'date', ...series.map((line) => line.name)], rows);
        if (drawn.length === 0) {
            display.append(view.element('h2', {textContent: title}));
            view.paragraph(display, `The same at all ${commits.length} commits for every kernel.`);
            display.append(view.element('details', {}, view.element('summary', {textContent: 'The values'}), made,
                downloads(title, null, made)));
            return;
        }
        const stayed = series.length - drawn.length;
        const note = `${unit} by commit, oldest first: a line for each kernel whose number changed. The table has all` +
            (stayed === 0 ? '.' : `, ${stayed} that stayed the same too.`);
        view.figure(display, title, note, (chart) => charts.lines(chart, {
            label: `${title}: ${unit} by commit, one line a kernel; the table has the values`,
            xTitle: 'commit',
            yTitle: unit,
            places: commits.map(choices.short),
            series: drawn,
            changes,
            changesName: machineCode.changesName,
        }), made);
    }

    /* A table alone: what is shown are names, not numbers. */
    function hashes(display, title, code, commits) {
        const known = code.filter((line) => line.code.some((one) => one !== null));
        if (known.length === 0) {
            return;
        }
        const rows = commits.map((commit, place) => [
            choices.short(commit), choices.day(commit), ...known.map((line) => machineCode.cell(line.code[place])),
        ]).reverse();
        display.append(view.element('h2', {textContent: title}), view.table(
            `${title}, its first digits, newest first`, ['commit', 'date', ...known.map((line) => line.name)], rows));
    }

    coalescing.resources = render;
})(window.coalescing);
