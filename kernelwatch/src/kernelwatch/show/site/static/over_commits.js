// The figure of numbers over the commits, and its table, newest first.
'use strict';

(function (coalescing) {
    const {view, charts, choices, machineCode} = coalescing;
    const NOT_AGAIN = 'not measured again: as at';

    const digits = (value) => value === null ? null : String(+value.toPrecision(5));

    /* spec: title, note, unit, commits, oldest first; lines: [{name, values, code, origins}] by commit, where `origins` are the
       commits whose numbers they have, and `code` is the machine code, if the table has it; `gpus` that took each commit's values;
       `changes` of machine code that are marked; `from` what the axis begins. Lines that never change stand in the table alone
       where `only` those that do are drawn. */
    function overCommits(display, {title, note, unit, commits, lines, gpus = [], changes = [], from, only = false}) {
        const onGpu = gpus.some((gpu) => gpu !== null);
        const origin = ({origins}, place) => origins === undefined ? null : origins[place];
        const headers = ['commit', 'date', ...(onGpu ? ['GPU'] : []), ...lines.flatMap(
            ({name, code}) => [`${name}, ${unit}`, ...(code === undefined ? [] : ['machine code'])])];
        const rows = commits.map((commit, place) => [
            choices.short(commit), choices.day(commit), ...(onGpu ? [gpus[place]] : []),
            ...lines.flatMap((line) => [
                origin(line, place) === null ? digits(line.values[place]) : `${digits(line.values[place])}, as at ${origin(line, place)}`,
                ...(line.code === undefined ? [] : [machineCode.cell(line.code[place])]),
            ]),
        ]).reverse();
        const made = view.table(`${title}, newest first`, headers, rows);
        const changed = ({values}) => new Set(values.filter((value) => value !== null)).size > 1;
        const drawn = only ? lines.filter(changed) : lines;
        if (drawn.length === 0) {
            view.folded(display, title, `The same at all ${commits.length} commits for every kernel.`, made);
            return;
        }
        const tip = ({name, values, ...line}) => values.map((value, place) => `${choices.short(commits[place])}, ${name}: ` +
            `${digits(value)} ${unit}` + (onGpu && gpus[place] !== null ? `, GPU ${gpus[place]}` : '') +
            (origin(line, place) === null ? '' : `, ${NOT_AGAIN} ${origin(line, place)}`));
        view.figure(display, title, note, (chart) => charts.lines(chart, {
            label: `${title}: ${unit} by commit; the table has the values`,
            xTitle: 'commit',
            yTitle: unit,
            places: commits.map(choices.short),
            series: drawn.map((line) => ({
                name: line.name, values: line.values, titles: tip(line), hollow: commits.map((_, place) => origin(line, place) !== null),
            })),
            changes,
            changesName: 'machine code changed',
            hollow: 'not measured again: the number of an earlier commit with the same machine code',
            fitted: from === 'fitted to the values',
            scale: from,
        }), made);
    }

    coalescing.overCommits = overCommits;
})(window.coalescing);
