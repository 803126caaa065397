// The view Resources: what the compiler made of each kernel, commit by commit.
'use strict';

(function (coalescing) {
    const {data, view, choices, machineCode, overCommits} = coalescing;

    async function render(index, chosen, display) {
        const names = data.ofKind(index, 'compiled');
        const machines = choices.machines(index, names);
        if (machines.length === 0) {
            view.paragraph(display, 'No commit has been compiled yet: kernelwatch run');
            return;
        }
        const machine = chosen.machine(index, machines, 'resources of machine');
        const {axes, chosen: preferred} = index.benchmarks[names[0]];
        const picks = Object.fromEntries(Object.entries(axes).filter(([axis]) => axis !== 'kernel').map(
            ([axis, values]) => [axis, chosen.among(axis, axis, values, preferred[axis], axis)]));
        chosen.show();
        view.paragraph(display, 'As ptxas reports them, on any machine, with or without a GPU. Fewer are better. The flag marks ' +
            'a commit whose machine code of some kernel, the cubin, is another than before.');
        machineCode.missing(display, machine);

        const shown = machine.commits.map((_, place) => place).filter((place) => data.has(index, machine.commits[place], names));
        const commits = shown.map((place) => machine.commits[place]);
        const codes = await machineCode.codes(machine, picks.arch, shown);
        const code = axes.kernel.map((name) => ({name, code: codes.of(`${name} ${picks.dtype} ${picks.flags}`)}));
        const title = (what) => `${what}, ${Object.values(picks).join(', ')}`;
        for (const name of names.filter((one) => machine.commits.some((commit) => data.has(index, commit, [one])))) {
            const benchmark = index.benchmarks[name];
            const piece = await data.values(machine, benchmark);
            const lines = data.combinations(benchmark.axes).flatMap((params, place) => data.where([{params}], picks).length === 0 ? [] : [
                {name: params.kernel, values: data.series(piece, place, shown).values}]);
            overCommits(display, {
                title: title(benchmark.title), unit: benchmark.unit, commits, only: true,
                lines: lines.filter(({values}) => values.some((value) => value !== null)),
                note: `${benchmark.unit} by commit, oldest first: a line for each kernel whose number changed. The table has all.`,
                changes: machineCode.changes(code, commits), from: 'from 0',
            });
        }
        const known = code.filter((line) => line.code.some((one) => one !== null));
        if (known.length > 0) {
            const rows = commits.map((commit, place) => [
                choices.short(commit), choices.day(commit), ...known.map((line) => machineCode.cell(line.code[place])),
            ]).reverse();
            const caption = title('Machine code: SHA-256 of the cubin');
            view.section(display, caption, view.table(
                `${caption}, its first digits, newest first`, ['commit', 'date', ...known.map(({name}) => name)], rows));
        }
    }

    coalescing.resources = render;
})(window.coalescing);
