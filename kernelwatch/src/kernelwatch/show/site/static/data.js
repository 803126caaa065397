// The data of the pages, in pieces. A piece is a script, because a page opened as a file can load only scripts. Each is loaded once, when
// a page needs it. The modules data.py and configurations.py write the pieces and describe their fields.
'use strict';

/**
 * @typedef {Object<string, any>} Index The benchmarks and machines, by name.
 * @typedef {Object<string, any>} Machine A machine with its commits, oldest first.
 * @typedef {Object<string, any>} Commit A commit that the machine measured; `date` in milliseconds.
 * @typedef {Object<string, any>} Benchmark A benchmark: `axes` has the values of each axis by name.
 * @typedef {Object<string, string>} Params The values of a configuration by axis.
 * @typedef {{params: Params, value: ?number, usefulBytes: ?number, flops: ?number}} Point A configuration with its value: times in
 *     seconds; null if it was not measured.
 */

/* Store the data of a piece at its script element; the script calls this function with the data as JSON. */
function arrived(text) {
    document.currentScript.received = JSON.parse(text);
}

/** The relative address of the site's folder; pages of commits are in a subfolder. */
const ROOT = document.documentElement.dataset.root;

const pieces = {};

/** Return the data of the piece at a path in the folder `data`; load it unless it was loaded before.
 * @type {(place: string) => Promise<object>} */
function loadPiece(place) {
    pieces[place] ??= new Promise(function (resolve, reject) {
        const script = makeElement('script', {src: `${ROOT}data/${place}.js?made=${document.documentElement.dataset.made}`});
        script.onload = script.onerror = function () {
            script.remove();
            return script.received === undefined ? reject(new Error(script.src)) : resolve(script.received);
        };
        document.head.append(script);
    });
    return pieces[place];
}

/** Return an object with each value replaced.
 * @type {(object: Object<string, any>, replace: (value: any) => any) => Object<string, any>} */
const mapValues = (object, replace) => Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, replace(value)]));

/** Load the index, with benchmarks by name. Benchmarks and commits get the facts that the stored index has only once for several.
 * @type {() => Promise<Index>} */
async function loadIndex() {
    const index = await loadPiece('index');
    const measured = index.measured.map((facts) => ({...facts, counts: parseRuns(facts.counts)}));
    Object.values(index.machines).forEach(({commits}) => commits.forEach(
        (commit) => Object.assign(commit, index.runs[commit.run], measured[commit.measured])));
    const benchmarks = Object.fromEntries(index.benchmarks.map(([place, names, work], id) => {
        const [{prefix, sweep, ...facts}, [method, suffix, unit]] = [index.classes[place], index.names[names]];
        const own = {id, name: prefix + method, title: facts.family + suffix, unit};
        return [own.name, {...index.sweeps[sweep], ...facts, ...mapValues(work, parseRuns), ...own}];
    }));
    return {...index, benchmarks};
}

/** Parse the numbers of a text such as "3.81543,,64"; a missing one is null. Texts have microseconds, times are in seconds.
 * @type {(text: string, benchmark: Benchmark) => (?number)[]} */
const parseNumbers = (text, {type}) => text.split(',').map(
    (number) => number === '' ? null : Number(type === 'time' ? `${number}e-6` : number));

/** Parse the whole numbers of a text such as "64,,-": an empty entry repeats the last number, a dash means no number.
 * @type {(text: string) => (?number)[]} */
function parseRuns(text) {
    let last = null;
    return text.split(',').map(function (number) {
        last = number === '' ? last : number === '-' ? null : Number(number);
        return last;
    });
}

/** Load the values of a benchmark on all commits of a machine. The piece has an earlier row's index in place of a repeated row.
 * @type {(machine: Machine, benchmark: Benchmark) => Promise<Object<string, any>>} */
async function loadValues(machine, benchmark) {
    const data = await loadPiece(`values/${machine.id}/${benchmark.id}`);
    const rows = data.values.map((row) => Number.isInteger(row) ? data.values[row] : row);
    return {...data, values: rows.map((row) => row === null ? null : parseNumbers(row, benchmark))};
}

/** Load the values of benchmarks of one kind on a commit, by the `id` of a benchmark; empty if the commit has none.
 * @type {(machine: Machine, commit: Commit, benchmarks: Benchmark[]) => Promise<Object<number, ?number[]>>} */
async function loadCommitValues(machine, commit, benchmarks) {
    if (!hasValues(commit, benchmarks)) {
        return {};
    }
    const texts = await loadPiece(`commits/${machine.id}/${commit.data[benchmarks[0].kind]}-${benchmarks[0].kind}`);
    return mapValues(texts, (text) => parseNumbers(text, benchmarks[0]));
}

/** Return the address of a configuration's graph on the page History.
 * @type {(machine: string, benchmark: string, params: Params) => string} */
function linkHistory(machine, benchmark, params) {
    const picks = Object.entries(params).map(([axis, value]) => [`p-${axis}`, value]);
    return `${ROOT}history.html#${new URLSearchParams([['machine', machine], ['benchmark', benchmark], ...picks])}`;
}

/** List the parameters of every configuration; the last axis varies fastest.
 * @type {(axes: Object<string, string[]>) => Params[]} */
const listCombinations = (axes) => Object.entries(axes).reduce(
    (combinations, [axis, values]) => combinations.flatMap((params) => values.map((value) => ({...params, [axis]: value}))), [{}]);

/** List every configuration of a benchmark with its value on a commit, its useful bytes and its floating-point operations.
 * @type {(benchmark: Benchmark, values?: Object<number, ?number[]>) => Point[]} */
const listPoints = (benchmark, values = {}) => listCombinations(benchmark.axes).map((params, place) => ({
    params,
    value: values[benchmark.id]?.[place] ?? null,
    usefulBytes: benchmark.useful_bytes?.[place] ?? null,
    flops: benchmark.flops?.[place] ?? null,
}));

/** Return the points whose parameters have the given values.
 * @type {(points: Point[], fixed: Params) => Point[]} */
const filterPoints = (points, fixed) => points.filter(
    ({params}) => Object.entries(fixed).every(([axis, value]) => params[axis] === value));

/** List the values of an axis for which some point was measured, in the order of the axis.
 * @type {(points: Point[], axis: string) => string[]} */
const listMeasured = (points, axis) => [...new Set(points.filter(({value}) => value !== null).map(({params}) => params[axis]))];

/** Count the elements of a size such as "256x256" or "65536".
 * @type {(size: string) => number} */
const countElements = (size) => size.split('x').reduce((product, side) => product * Number(side), 1);

/** List the values of an axis for which some point was measured, smallest size first.
 * @type {(points: Point[], axis: string) => string[]} */
const listPlaces = (points, axis) => listMeasured(points, axis).sort((left, right) => countElements(left) - countElements(right) || 0);

/** Return whether the lines of a benchmark's figures are kernels; else they are dtypes.
 * @type {(benchmark: Benchmark) => boolean} */
const hasKernelLines = ({lines}) => lines !== null && lines !== 'dtype';

/** Return the name of a line in a figure; that of a kernel without a reference ends with "not verified".
 * @type {(index: Index, benchmark: Benchmark, value: string) => string} */
const nameLine = (index, benchmark, value) => index.unverified.includes(hasKernelLines(benchmark) ? value : benchmark.kernel)
    ? `${value}, not verified` : value;

/** Return the versions of the PTX generators that a commit used for a configuration; null if its kernel is not generated.
 * @type {(index: Index, commit: Commit, benchmark: Benchmark, params: Params) => ?string} */
function findGenerators(index, {generators}, benchmark, params) {
    const kernel = hasKernelLines(benchmark) ? params[benchmark.lines] : benchmark.kernel;
    const versions = Object.keys(generators).find((text) => generators[text].includes(benchmark.id));
    return index.generated.includes(kernel) ? versions ?? null : null;
}

/** Return the fixed value of each axis in a figure: the picked one if it was measured, or else the one of the summary.
 * @type {(benchmark: Benchmark, axes: string[], picks: Params, points: Point[]) => Params} */
const fixAxes = (benchmark, axes, picks, points) => Object.fromEntries(axes.filter((axis) => axis in benchmark.axes).map((axis) => [
    axis, listMeasured(points, axis).includes(picks[axis]) ? picks[axis] : benchmark.chosen[axis]]));

/** Join texts, and the values of axes, to a title. An axis is named if its value is a number.
 * @type {(...parts: (string | Params)[]) => string} */
const joinTitle = (...parts) => parts.flatMap((part) => typeof part === 'string' ? [part] : Object.entries(part).map(
    ([axis, value]) => /^\d+$/.test(value) ? `${axis} ${value}` : value)).join(', ');

/** Return GB/s for an amount in bytes, or GFLOP/s for an amount in operations; null without an amount or a time.
 * @type {(amount: ?number, seconds: ?number) => ?number} */
const computeRate = (amount, seconds) => amount === null || seconds === null ? null : amount / seconds / 1e9;
const computeBandwidth = ({usefulBytes, value}) => computeRate(usefulBytes, value);
const computeGflops = ({flops, value}) => computeRate(flops, value);

/** Return the benchmarks of a kind: `timed`, `control`, `counted` or `compiled`.
 * @type {(index: Index, kind: string) => Benchmark[]} */
const filterKind = (index, kind) => Object.values(index.benchmarks).filter((benchmark) => benchmark.kind === kind);

/** Count the values of the benchmarks that a commit has.
 * @type {(commit: Commit, benchmarks: Benchmark[]) => number} */
const countValues = (commit, benchmarks) => benchmarks.reduce((total, {id}) => total + commit.counts[id], 0);
const hasValues = (commit, benchmarks) => countValues(commit, benchmarks) > 0;

/** Return a machine's commits that have values of some benchmarks.
 * @type {(machine: Machine, benchmarks: Benchmark[]) => Commit[]} */
const filterCommits = (machine, benchmarks) => machine.commits.filter((commit) => hasValues(commit, benchmarks));

/** Return the newest commit that has at least half of the values of the commit with most. Commits of partial runs have fewer.
 * @type {(commits: Commit[], benchmarks: Benchmark[]) => Commit} */
function findFullest(commits, benchmarks) {
    const most = Math.max(...commits.map((commit) => countValues(commit, benchmarks)));
    return commits.findLast((commit) => 2 * countValues(commit, benchmarks) >= most);
}

/** List the first digits of the UUIDs of the GPUs that timed some benchmarks on a commit.
 * @type {(commit: Commit, benchmarks: Benchmark[]) => string[]} */
const listGpus = (commit, benchmarks) => Object.keys(commit.gpus).filter(
    (gpu) => benchmarks.some(({id}) => commit.gpus[gpu].includes(id)));

/** Return the relative change up to which a time is the same on one GPU, by a machine's thresholds.
 * @type {(seconds: number, machine: Machine) => number} */
const findNoise = (seconds, {noise}) => noise.find(([least]) => seconds >= least)[1];

const shortenHash = (commit) => commit.commit.slice(0, 8);
const formatDay = (commit) => new Date(commit.date).toISOString().slice(0, 10);
