// The page History: one benchmark over the commits, with marks where the machine code changed.
'use strict';

/**
 * @typedef {{value: ?number, seconds: ?number, gpu: ?string, origin: ?string, failed: ?string, generators: ?string, part: number,
 *     code: ?{sha256: string, changed: boolean}}} Entry A configuration on a commit. `value` has the chosen unit, `seconds` is the stored
 *     value. `gpu` is set if several GPUs shared the benchmark, `origin` if an earlier commit's number was reused, `generators` if a
 *     package generates its PTX. Another version of that package is another compiler: there a new `part` of the line begins, unless the
 *     machine code is equal.
 * @typedef {{name: string, machine: Machine, entries: Entry[]}} Line A configuration with an entry for each commit.
 */

const ALL = 'all, a line each';
const EVERY_MACHINE = 'every machine';
const FITTED = 'fitted to the values';
const NOT_MEASURED = {value: null, seconds: null, gpu: null, origin: null, failed: null, generators: null, part: 0, code: null};
const MAX_BANDS = 2; // the noise bands of more lines would hide each other
const MAX_LINES = 8; // readers cannot tell more lines apart; if there are more, only lines with changes are drawn
const PEAK = '% of theoretical peak';

/* Unit -> function that converts a time from seconds. It takes the time, the benchmark, the configuration's index and the commit. It
   returns null if the unit makes no sense for the configuration. */
const UNITS = {
    'useful GB/s, higher is better': (seconds, {useful_bytes: bytes}, place) => computeRate(bytes[place], seconds),
    'GFLOP/s, higher is better': (seconds, {flops}, place) => computeRate(flops?.[place] ?? null, seconds),
    [PEAK]: (seconds, {useful_bytes: bytes, computes}, place, {peak_bytes_per_second: peak}) => computes || !peak || bytes[place] === null
        ? null : 1e11 * computeRate(bytes[place], seconds) / peak,
    'µs, lower is better': (seconds) => seconds * 1e6,
};

runPage(async function (choices, display) {
    const index = await loadIndex();
    const benchmarks = Object.values(index.benchmarks);
    const timed = benchmarks.filter(({type}) => type === 'time');
    const name = choices.pickMachine(index, benchmarks, timed, [EVERY_MACHINE]);
    if (name === null) {
        addParagraph(display, 'Nothing has been measured yet: kernelwatch run');
        return;
    }
    const names = name === EVERY_MACHINE ? Object.keys(index.machines) : [name];
    const machines = names.map((machineName) => index.machines[machineName]);
    const options = benchmarks.filter((benchmark) => machines.some((machine) => filterCommits(machine, [benchmark]).length > 0));
    const countConfigurations = ({axes}) => listCombinations(axes).length;
    const mostSwept = options.filter(({type}) => type === 'time').sort(
        (left, right) => countConfigurations(right) - countConfigurations(left))[0] || options[0];
    const benchmark = index.benchmarks[choices.pickOption('benchmark', 'Benchmark', options.map(
        (option) => ({value: option.name, label: `${option.title} (${option.name})`})), mostSwept.name)];
    const {fixed, picked, arch: pickedArch} = pickConfigurations(choices, benchmark);
    const {unit, convert} = pickUnit(choices, benchmark, machines.length > 1);
    const axis = choices.pickOption('axis', 'Axis', [FITTED, 'from 0', LOG]);
    const onlyMachine = machines.length > 1 ? undefined : machines[0];
    const arch = pickedArch || (onlyMachine && pickArch(choices, onlyMachine));
    choices.showControls();
    if (onlyMachine && onlyMachine.archs.length === 0) {
        addNotice(display, `No run on ${name} has stored hashes of machine code, so changes of machine code are not marked. A new run ` +
            'stores them: kernelwatch run');
    }
    const measuring = machines.filter((machine) => filterCommits(machine, [benchmark]).length > 0);
    const lines = (await Promise.all(measuring.map(async (machine) => {
        const values = await loadValues(machine, benchmark);
        const codes = onlyMachine && machine.archs.includes(arch) ? await loadPiece(`cubins/${machine.id}-${machine.archs.indexOf(arch)}`) : {};
        const combinations = listCombinations(benchmark.axes);
        return picked.map(({name: value, place}) => ({
            name: [...onlyMachine ? [] : [machine.short], nameLine(index, benchmark, value)].join(', '),
            machine, entries: listEntries(place, machine, values, codes, convert,
                (commit) => findGenerators(index, commit, benchmark, combinations[place])),
        }));
    }))).flat().filter(({entries}) => Object.values(entries).some(({value}) => isValue(value)));
    if (lines.length === 0) {
        addParagraph(display, 'No commit has a value of this configuration.');
        return;
    }
    const allCommits = new Map(machines.flatMap((machine) => machine.commits).map((commit) => [commit.commit, commit])).values();
    const commits = [...allCommits].filter(
        ({commit, branch}) => !branch && lines.some(({entries}) => isValue(entries[commit]?.value ?? entries[commit]?.failed))
    ).sort((left, right) => left.date - right.date);
    const placedLines = lines.map(({entries, ...line}) => ({...line, entries: commits.map(({commit}) => entries[commit] || NOT_MEASURED)}));
    drawHistory(display, index, benchmark, {fixed, unit, axis, commits, lines: placedLines, isAlone: onlyMachine !== undefined});
});

/* Add a choice for each axis. Return the chosen configurations {name, place}: one, or one for each value of the first axis. Return, too,
   the fixed values by axis, and the architecture if it is an axis. */
function pickConfigurations(choices, benchmark) {
    const axes = Object.entries(benchmark.axes);
    const picks = axes.map(([axis, values], place) => choices.pickOption(
        `p-${axis}`, axis, place === 0 && values.length > 1 ? [...values, ALL] : values, benchmark.chosen[axis]));
    const combinations = listCombinations(benchmark.axes);
    const [[, names] = [, [benchmark.title]]] = axes;
    const row = combinations.findIndex((params) => axes.every(([axis], place) => place === 0 || params[axis] === picks[place]));
    const all = names.map((name, place) => ({name, place: place * combinations.length / names.length + row}));
    const picked = axes.length === 0 || picks[0] === ALL ? all : all.filter(({name}) => name === picks[0]);
    const fixed = Object.fromEntries(axes.map(([axis], place) => [axis, picks[place]]).filter(([, value]) => value !== ALL));
    return {fixed, picked, arch: fixed.arch};
}

/* Return the unit in which values are shown, and the function that converts a stored value; times have a choice. */
function pickUnit(choices, benchmark, areSeveral) {
    if (benchmark.type !== 'time') {
        return {unit: benchmark.unit || 'value', convert: (value) => value};
    }
    const units = Object.keys(UNITS).filter((unit) => benchmark.useful_bytes.some(
        (_, place) => isValue(UNITS[unit](1, benchmark, place, {peak_bytes_per_second: 1}))));
    const unit = choices.pickOption('unit', 'Shown as', units, areSeveral && units.includes(PEAK) ? PEAK : units[0]);
    return {unit, convert: (value, place, commit) => UNITS[unit](value, benchmark, place, commit)};
}

/* Add the choice of the architecture whose machine code is shown; return it, by default that of the newest commit's GPU. */
function pickArch(choices, machine) {
    const newest = machine.commits.findLast((commit) => machine.archs.includes(commit.arch));
    return choices.pickOption('code', 'Machine code for', machine.archs, newest?.arch);
}

/* Return commit -> entry of a configuration on a machine. Its machine code has changed if the hash differs from the last stored one. */
function listEntries(place, machine, values, codes, convert, findVersions) {
    const runs = codes[values.code_names[values.machine_code[place]]] || [];
    let [lastHash, lastGenerators, part] = [null, null, 0];
    return Object.fromEntries(machine.commits.map(function (commit, row) {
        const findFact = (fact) => values[fact]?.[row]?.[place] ?? null;
        const stored = findFact('values');
        const sha256 = stored === null ? null : runs.findLast(([first]) => first <= row)?.[1] ?? null;
        const code = sha256 === null ? null : {sha256, changed: lastHash !== null && sha256 !== lastHash};
        const [generators, origin] = [stored === null ? null : findVersions(commit), findFact('origins')];
        if (!commit.branch) {
            const isEqualCode = origin !== null || sha256 !== null && sha256 === lastHash;
            part += generators === null || lastGenerators === null || generators === lastGenerators || isEqualCode ? 0 : 1;
            [lastHash, lastGenerators] = [sha256 ?? lastHash, generators ?? lastGenerators];
        }
        const value = stored === null ? null : convert(stored, place, commit);
        return [commit.commit, {
            value, seconds: stored, gpu: findFact('gpus'), origin, failed: findFact('failed'), generators, part, code}];
    }));
}

/* Return a mark for each commit with changed machine code of some line. `since` is the commit at which the code was last known: of
   several changed lines, the earliest. */
function listChanges(commits, lines) {
    return commits.flatMap((commit, place) => {
        const recompiled = lines.filter(({entries}) => entries[place].code?.changed);
        if (recompiled.length === 0) {
            return [];
        }
        const since = Math.min(place, ...recompiled.map(
            ({entries}) => entries.findLastIndex(({code}, earlier) => code && earlier < place)).filter((start) => start >= 0));
        const count = commit.position - commits[since].position; // more than one: those between were not measured
        const names = recompiled.map(({name}) => name).join(', ');
        return [{place, since: count > 1 ? since : place, title: `${shortenHash(commit)}: machine code changed of ${names}` +
            (count > 1 ? `, in one of ${count} commits since ${shortenHash(commits[since])}` : '')}];
    });
}

/* Return the positions of commits on the axis. A gap grows with the logarithm of the number of commits in it, so that neighbouring
   commits stay apart. */
const placeCommits = (commits) => commits.reduce((positions, {position}, place) => [
    ...positions, place === 0 ? 1 : positions.at(-1) + 1 + Math.log10(Math.max(1, position - commits[place - 1].position))], []);

/* Return a mark for each commit with another GPU, driver or generator of PTX than the last known one. */
function listConditions(commits, lines, gpus) {
    const last = {};
    return commits.map((commit, place) => {
        const facts = Object.entries({GPU: gpus[place].join(', '), driver: commit.driver, 'generator of PTX': listGenerators(lines, place)}).filter(([, value]) => value);
        const changes = facts.filter(([name, value]) => name in last && last[name] !== value).map(
            ([name, value]) => `${name} ${last[name]} before, ${value} now`);
        Object.assign(last, Object.fromEntries(facts));
        return {place, changes, title: `${shortenHash(commit)}: ${changes.join('; ')}`};
    }).filter(({changes}) => changes.length > 0);
}

/* Return the versions of the PTX generators that made the lines' kernels on a commit, as one text. */
const listGenerators = (lines, row) => [...new Set(lines.map(({entries}) => entries[row].generators).filter(isValue))].join(', ');

/* Make the table: a row for each commit, newest first, with the value of each line. For one machine, it also has the GPU and the machine
   code. */
function makeHistoryTable(unit, {commits, lines, isAlone}, gpus) {
    const hasGpus = isAlone && gpus.some((commitGpus) => commitGpus.length > 0);
    const describeValue = ({value, origin, failed}) => isValue(origin) ? `${formatFiveDigits(value)}, as at ${origin}` : formatFiveDigits(value) ?? failed;
    const describeCode = (code) => code && (code.changed ? 'changed: ' : '') + code.sha256;
    const rows = commits.map((commit, row) => [
        makeElement('a', {href: `commit/${commit.commit}.html`, textContent: shortenHash(commit)}), formatDay(commit),
        ...hasGpus ? [gpus[row].join(', ') || null] : [],
        ...lines.flatMap(({entries}) => [describeValue(entries[row]), ...isAlone ? [describeCode(entries[row].code)] : []]),
    ]).reverse();
    return makeTable(`${unit}, newest first`, ['commit', 'date', ...hasGpus ? ['GPU'] : [], ...lines.flatMap(
        ({name}) => [name, ...isAlone ? ['machine code'] : []])], rows);
}

/* Format a number with at most five significant digits; null stays null. */
const formatFiveDigits = (value) => value === null ? null : String(+value.toPrecision(5));

/* Draw the figure: lines over the commits, marks at changes of machine code and of conditions, and the table. */
function drawHistory(display, index, benchmark, figure) {
    const {fixed, unit, axis, commits, lines, isAlone} = figure;
    const gpus = commits.map((commit, row) => {
        const ownGpus = [...new Set(lines.map(({entries}) => entries[row].gpu).filter(isValue))];
        return ownGpus.length > 0 ? ownGpus : listGpus(commit, [benchmark]);
    });
    if (isAlone) {
        addGpuNotice(display, index, gpus.flat());
    }
    const title = joinTitle(benchmark.title, fixed);
    const hasChanged = ({entries}) => new Set(entries.map(({value}) => value).filter(isValue)).size > 1;
    const shown = lines.length > MAX_LINES ? lines.filter(hasChanged) : lines;
    const changes = listChanges(commits, lines);
    const isTime = benchmark.type === 'time';
    const unknown = Math.max(...lines.map(({entries}) => entries.filter(({value, code}) => isValue(value) && !code).length));
    const note = `${commits.length} commits, oldest first; a gap is wider if more commits lie in it. ` +
        (axis === FITTED ? 'The axis does not begin at 0. ' : '') +
        (shown.length < lines.length ? 'Only lines whose numbers changed are drawn; the table has all. ' : '') +
        (lines.some(({entries}) => entries.some(({part}) => part > 0))
            ? 'Another version of a generator of PTX is another compiler: a line ends where it made other machine code. ' : '') +
        (lines.every(({entries}) => entries.every(({code}) => !code)) ? '' : `The machine code changed at ${changes.length} of them` +
            (unknown > 0 ? `, and is unknown at ${unknown}` : '') + '. Only these commits can have changed the kernel.');
    const listTitles = ({name, entries}) => entries.map(({value, origin, generators}, row) => `${shortenHash(commits[row])}, ${name}: ` +
        `${formatFiveDigits(value)} ${unit}` + (gpus[row].length > 0 ? `, GPU ${gpus[row].join(', ')}` : '') +
        (generators ? `, ${generators}` : '') + (isValue(origin) ? `, not measured again: as at ${origin}` : ''));
    addFigure(display, title, note, (container) => shown.length === 0 ? addParagraph(container, 'No number changed.') : drawLines(container, {
        label: `${title}: ${unit} by commit; the table has the values`,
        xTitle: 'commit', yTitle: unit, places: commits.map(shortenHash), positions: placeCommits(commits),
        changes, changesName: 'machine code changed',
        series: shown.map((line) => ({
            name: line.name, values: line.entries.map(({value, failed}) => value ?? (failed ? null : undefined)),
            titles: listTitles(line), parts: line.entries.map(({part}) => part), hollow: line.entries.map(({origin}) => isValue(origin)),
            noise: isTime && shown.length <= MAX_BANDS
                ? line.entries.map(({seconds}) => isValue(seconds) ? findNoise(seconds, line.machine) : null) : [],
        })),
        conditions: isAlone ? listConditions(commits, lines, gpus) : [], conditionsName: 'another GPU, driver or generator of PTX',
        noiseName: 'noise of one GPU: smaller differences are no change',
        hollowName: 'not measured again: the number of an earlier commit with the same machine code',
        fitted: axis === FITTED, scale: axis,
    }), makeHistoryTable(unit, figure, gpus));
}
