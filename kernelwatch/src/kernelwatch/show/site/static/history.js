// The page History: one benchmark over the commits, with marks where the machine code changed.
'use strict';

const ALL = 'all, a line each';
const EVERY = 'every machine';
const FITTED = 'fitted to the values';
const NOT_MEASURED = {value: null, seconds: null, gpu: null, origin: null, failed: null, code: null};
const BANDS = 2; // of more lines, the noise bands would hide each other
const LINES = 8; // maximum number that a reader can tell apart: of more lines, only changed ones are drawn

/* Conversions of a time in seconds, by unit, for a configuration at a place on a commit; null without a meaning. */
const PEAK = '% of theoretical peak';
const UNITS = {
    'useful GB/s, higher is better': (seconds, {useful_bytes: bytes}, place) => rateOf(bytes[place], seconds),
    'GFLOP/s, higher is better': (seconds, {flops}, place) => rateOf(flops?.[place] ?? null, seconds),
    [PEAK]: (seconds, {useful_bytes: bytes, computes}, place, {peak_bytes_per_second: peak}) => computes || !peak || bytes[place] === null
        ? null : 1e11 * rateOf(bytes[place], seconds) / peak,
    'µs, lower is better': (seconds) => seconds * 1e6,
};

page(async function (chosen, display) {
    const index = await loadIndex();
    const every = Object.values(index.benchmarks);
    const timed = every.filter(({type}) => type === 'time');
    const machines = Object.keys(index.machines);
    const name = chosen.machine(index, every, timed, [EVERY]);
    if (name === null) {
        paragraph(display, 'Nothing has been measured yet: kernelwatch run');
        return;
    }
    const shown = (name === EVERY ? machines : [name]).map((one) => ({name: one, ...index.machines[one]}));
    const options = every.filter((one) => shown.some((machine) => commitsWith(machine, [one]).length > 0));
    const size = ({axes}) => combinations(axes).length;
    const mostSwept = options.filter(({type}) => type === 'time').sort((one, other) => size(other) - size(one))[0] || options[0];
    const asked = chosen.pick('benchmark', 'Benchmark', options.map(
        (one) => ({value: one.name, label: `${one.title} (${one.name})`})), mostSwept.name);
    const benchmark = index.benchmarks[asked];
    const {fixed, picked, arch: own} = configuration(chosen, benchmark);
    const scaled = shownAs(chosen, benchmark, shown.length > 1);
    const from = chosen.pick('axis', 'Axis', [FITTED, 'from 0', LOG]);
    const [alone] = shown.length > 1 ? [] : shown;
    const arch = own || (alone && archOf(chosen, alone));
    chosen.show();
    if (alone && alone.archs.length === 0) {
        notice(display, `No run on ${name} stored the hashes of its machine code, so no change of it can be marked. Each run stores ` +
            'them: kernelwatch run');
    }
    const found = (await Promise.all(shown.filter((machine) => commitsWith(machine, [benchmark]).length > 0).map(async (machine) => {
        const values = await valuesOf(machine, benchmark);
        const codes = alone && alone.archs.includes(arch) ? await piece(`cubins/${machine.id}-${alone.archs.indexOf(arch)}`) : {};
        return picked.map(({name: line, place}) => ({
            name: [...alone ? [] : [machine.short], label(index, benchmark, line)].join(', '),
            machine, at: seriesAt(place, machine, values, codes, scaled.of),
        }));
    }))).flat().filter(({at}) => Object.values(at).some(({value}) => isValue(value)));
    if (found.length === 0) {
        paragraph(display, 'No commit has a value of this configuration.');
        return;
    }
    const commits = [...new Map(shown.flatMap((machine) => machine.commits).map((one) => [one.commit, one])).values()].filter(
        ({commit, branch}) => !branch && found.some(({at}) => isValue(at[commit]?.value ?? at[commit]?.failed))
    ).sort((one, other) => one.date - other.date);
    const drawn = found.map(({at, ...line}) => ({...line, at: commits.map(({commit}) => at[commit] || NOT_MEASURED)}));
    overCommits(display, index, benchmark, {fixed, unit: scaled.unit, from, commits, drawn, isAlone: alone !== undefined});
});

/* The chosen configuration: the lines to draw along the first axis, and the architecture if it is an axis. */
function configuration(chosen, benchmark) {
    const axes = Object.entries(benchmark.axes);
    const picks = axes.map(([axis, values], at) => chosen.pick(
        `p-${axis}`, axis, at === 0 && values.length > 1 ? [...values, ALL] : values, benchmark.chosen[axis]));
    const every = combinations(benchmark.axes);
    const [[, first] = [, [benchmark.title]]] = axes;
    const row = every.findIndex((one) => axes.every(([axis], at) => at === 0 || one[axis] === picks[at]));
    const all = first.map((name, at) => ({name, place: at * every.length / first.length + row}));
    const picked = axes.length === 0 || picks[0] === ALL ? all : all.filter(({name}) => name === picks[0]);
    return {fixed: picks.slice(1).join(', '), picked, arch: picks[axes.findIndex(([axis]) => axis === 'arch')]};
}

/* The unit of the shown values, and the conversion from stored values. */
function shownAs(chosen, benchmark, isBeside) {
    if (benchmark.type !== 'time') {
        return {unit: benchmark.unit || 'value', of: (value) => value};
    }
    const units = Object.keys(UNITS).filter((unit) => benchmark.useful_bytes.some(
        (_, place) => isValue(UNITS[unit](1, benchmark, place, {peak_bytes_per_second: 1}))));
    const unit = chosen.pick('unit', 'Shown as', units, isBeside ? units.find((one) => one === PEAK) : units[0]);
    return {unit, of: (value, place, commit) => UNITS[unit](value, benchmark, place, commit)};
}

/* The architecture whose machine code is shown; a choice if there are several. */
function archOf(chosen, machine) {
    const newest = machine.commits.findLast((commit) => machine.archs.includes(commit.arch));
    return chosen.pick('code', 'Machine code for', machine.archs, newest?.arch);
}

/* The facts on a configuration by commit of a machine: value, GPU if several shared the benchmark, origin if an earlier commit's
   number was reused, and machine code as {sha256, changed}, compared with the last stored hash. */
function seriesAt(place, machine, values, codes, of) {
    const runs = codes[values.code_names[values.machine_code[place]]] || [];
    let last = null;
    return Object.fromEntries(machine.commits.map(function (commit, row) {
        const own = (what) => values[what]?.[row]?.[place] ?? null;
        const stored = own('values');
        const sha256 = stored === null ? null : runs.findLast(([first]) => first <= row)?.[1] ?? null;
        const code = sha256 === null ? null : {sha256, changed: last !== null && sha256 !== last};
        last = commit.branch ? last : sha256 ?? last;
        const value = stored === null ? null : of(stored, place, commit);
        return [commit.commit, {value, seconds: stored, gpu: own('gpus'), origin: own('origins'), failed: own('failed'), code}];
    }));
}

/* The places of commits that another GPU or driver measured than the commit before, of which that is known. */
function listConditions(commits, gpus) {
    const last = {};
    return commits.map((commit, place) => {
        const facts = Object.entries({GPU: gpus[place].join(', '), driver: commit.driver}).filter(([, value]) => value);
        const changes = facts.filter(([name, value]) => name in last && last[name] !== value).map(
            ([name, value]) => `${name} ${last[name]} before, ${value} now`);
        Object.assign(last, Object.fromEntries(facts));
        return {place, changes, title: `${short(commit)}: ${changes.join('; ')}`};
    }).filter(({changes}) => changes.length > 0);
}

/* Draw the lines over the commits, marks at changes of machine code, and the table, newest first. */
function overCommits(display, index, benchmark, {fixed, unit, from, commits, drawn, isAlone}) {
    const gpus = commits.map((commit, row) => {
        const said = [...new Set(drawn.map(({at}) => at[row].gpu).filter(isValue))];
        return said.length > 0 ? said : gpusOf(commit, [benchmark]);
    });
    const onGpu = isAlone && gpus.some((some) => some.length > 0);
    if (isAlone) {
        noticeGpus(display, index, gpus.flat());
    }
    const exact = (value) => value === null ? null : String(+value.toPrecision(5));
    const codeOf = (code) => code && (code.changed ? 'changed: ' : '') + code.sha256;
    const title = [benchmark.title, fixed].filter(Boolean).join(', ');
    const headers = ['commit', 'date', ...onGpu ? ['GPU'] : [], ...drawn.flatMap(
        ({name}) => [`${name}, ${unit}`, ...isAlone ? ['machine code'] : []])];
    const rows = commits.map((commit, row) => [
        element('a', {href: `commit/${commit.commit}.html`, textContent: short(commit)}), day(commit), ...onGpu ? [gpus[row].join(', ') || null] : [], ...drawn.flatMap(({at}) => [
            !isValue(at[row].origin) ? exact(at[row].value) ?? at[row].failed : `${exact(at[row].value)}, as at ${at[row].origin}`,
            ...isAlone ? [codeOf(at[row].code)] : []]),
    ]).reverse();
    const changed = ({at}) => new Set(at.map(({value}) => value).filter(isValue)).size > 1;
    const some = drawn.length > LINES ? drawn.filter(changed) : drawn;
    const changes = commits.flatMap((commit, place) => {
        const recompiled = drawn.filter(({at}) => at[place].code?.changed);
        if (recompiled.length === 0) {
            return [];
        }
        const since = d3.range(place - 1, -1, -1).find((before) => recompiled.some(({at}) => at[before].code)) ?? place;
        const count = commit.position - commits[since].position; // more than one: those between were not measured
        const names = recompiled.map(({name}) => name).join(', ');
        return [{place, since: count > 1 ? since : place, title: `${short(commit)}: machine code changed of ${names}` +
            (count > 1 ? `, in one of ${count} commits since ${short(commits[since])}` : '')}];
    });
    const conditions = isAlone ? listConditions(commits, gpus) : [];
    const isTime = benchmark.type === 'time';
    const unknown = Math.max(...drawn.map(({at}) => at.filter(({code}) => !code).length));
    const note = `${commits.length} commits, oldest first; ${unit}. ` + (from === FITTED ? 'The axis does not begin at 0. ' : '') +
        (some.length < drawn.length ? 'A line for each whose number changed; the table has all. ' : '') +
        (drawn.every(({at}) => at.every(({code}) => !code)) ? '' : `The machine code changed at ${changes.length} of them` +
            (unknown > 0 ? `, and is not known of ${unknown}` : '') + ': only there can a change be the kernel\'s.');
    const tip = ({name, at}) => at.map(({value, origin}, row) => `${short(commits[row])}, ${name}: ${exact(value)} ${unit}` +
        (gpus[row].length > 0 ? `, GPU ${gpus[row].join(', ')}` : '') + (isValue(origin) ? `, not measured again: as at ${origin}` : ''));
    figure(display, title, note, (chart) => some.length === 0 ? paragraph(chart, 'No number changed.') : lines(chart, {
        label: `${title}: ${unit} by commit; the table has the values`,
        xTitle: 'commit', yTitle: unit, places: commits.map(short), changes, changesName: 'machine code changed',
        series: some.map(({name, machine, at}) => ({
            name, values: at.map(({value}) => value), titles: tip({name, at}), hollow: at.map(({origin}) => isValue(origin)),
            noise: isTime && some.length <= BANDS ? at.map(({seconds}) => isValue(seconds) ? noiseOf(seconds, machine) : null) : [],
        })),
        conditions, conditionsName: 'another GPU or driver', noiseName: 'noise of one GPU: differences within it are no change',
        hollowName: 'not measured again: the number of an earlier commit with the same machine code',
        fitted: from === FITTED, scale: from,
    }), table(`${title}, newest first`, headers, rows));
}
