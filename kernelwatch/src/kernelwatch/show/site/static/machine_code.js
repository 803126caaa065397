// Where the machine code of a kernel changed: marks on graphs over commits, and cells of their tables.
'use strict';

(function (coalescing) {
    const {data, view, choices} = coalescing;

    /* The architecture whose machine code is shown, by a choice where several were compiled for. */
    function arch(chosen, machine) {
        const newest = [...machine.commits].reverse().find((commit) => machine.archs.includes(commit.arch));
        return chosen.among(
            'code', 'Machine code for', machine.archs, newest === undefined ? undefined : newest.arch, 'machine code for');
    }

    /* The hashes of kernels' machine code at the commits of `shown` (places in machine.commits). `of(name)` yields by
       place: {sha256, changed}; null where none is stored. Changed is what differs from the last that is stored. */
    async function codes(machine, on, shown) {
        const runs = machine.archs.includes(on) ? (await data.cubins(machine))[on] : {};
        return {of: (name) => name === null || runs[name] === undefined ? shown.map(() => null) : along(runs[name], shown)};
    }

    function along(runs, shown) {
        let last = null;
        return shown.map(function (place) {
            const run = runs.filter(([first]) => first <= place).pop();
            if (run === undefined || run[1] === null) {
                return null;
            }
            const changed = last !== null && run[1] !== last;
            last = run[1];
            return {sha256: run[1], changed};
        });
    }

    /* The marks of a graph: a place where any of the lines' code changed, and whose. */
    function changes(lines, commits) {
        return commits.map(function (commit, place) {
            const names = lines.filter(({code}) => code[place] !== null && code[place].changed).map(({name}) => name);
            return {place, names, title: `${choices.short(commit)}: machine code changed of ${names.join(', ')}`};
        }).filter(({names}) => names.length > 0);
    }

    const DIGITS = 8; // as many as are shown of commits and GPUs
    const cell = (code) => code === null ? null : (code.changed ? 'changed: ' : '') + code.sha256.slice(0, DIGITS);

    /* Say so where no hash is stored, so that nobody takes the lack of marks for the lack of changes. */
    function missing(display, machine) {
        if (machine.archs.length === 0) {
            view.notice(display, `No run on ${machine.name} stored the hashes of its machine code, so no change of it can be ` +
                'marked. Each run stores them: kernelwatch run');
        }
    }

    coalescing.machineCode = {arch, codes, changes, cell, missing};
})(window.coalescing);
