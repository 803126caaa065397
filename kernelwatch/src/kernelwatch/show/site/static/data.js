// The data that the publisher wrote, in pieces. Each piece is loaded once, when it is shown. Pieces are scripts, since a page opened as
// a file can load nothing else.
'use strict';

/* Receive a piece: its script calls this function. */
function arrived(text) {
    document.currentScript.received = JSON.parse(text);
}

/* The relative address of the site's folder: pages of commits lie in a folder of their own. */
const ROOT = document.documentElement.dataset.root;

const pieces = {};

/* Load a piece; returns a promise. */
function piece(place) {
    pieces[place] ??= new Promise(function (resolve, reject) {
        const script = element('script', {src: `${ROOT}data/${place}.js?made=${document.documentElement.dataset.made}`});
        script.onload = script.onerror = function () {
            script.remove();
            return script.received === undefined ? reject(new Error(script.src)) : resolve(script.received);
        };
        document.head.append(script);
    });
    return pieces[place];
}

/* Load the index, and give each benchmark its name, and benchmarks and commits the facts that they share with others. */
async function loadIndex() {
    const index = await piece('index');
    Object.values(index.machines).forEach(({commits}) => commits.forEach(
        (commit) => Object.assign(commit, index.runs[commit.run], index.measured[commit.measured])));
    const benchmarks = Object.fromEntries(index.benchmarks.map(([shared, names, work], id) => {
        const [{prefix, ...facts}, [method, suffix, unit]] = [index.shared[shared], index.names[names]];
        return [prefix + method, {...facts, ...work, id, name: prefix + method, title: facts.family + suffix, unit}];
    }));
    return {...index, benchmarks};
}

/* The numbers of a text such as "3.81543,,64", null where there is none. Times are in microseconds. */
const numbersOf = (text, {type}) => text.split(',').map((number) => number === '' ? null : Number(type === 'time' ? `${number}e-6` : number));

/* The values of a benchmark on all commits. For a row that came before, the piece has the place of that one. */
async function valuesOf(machine, benchmark) {
    const data = await piece(`values/${machine.id}/${benchmark.id}`);
    const rows = data.values.map((row) => Number.isInteger(row) ? data.values[row] : row);
    return {...data, values: rows.map((row) => row === null ? null : numbersOf(row, benchmark))};
}

/* The values of some benchmarks of one kind on one of a machine's commits, by the benchmark's number. */
async function valuesAt(machine, commit, benchmarks) {
    if (!has(commit, benchmarks)) {
        return {};
    }
    const texts = await piece(`commits/${machine.id}/${commit.data[benchmarks[0].kind]}-${benchmarks[0].kind}`);
    return Object.fromEntries(Object.entries(texts).map(([id, text]) => [id, numbersOf(text, benchmarks[0])]));
}

/* The address of a configuration's graph on the page History. */
function historyLink(machine, benchmark, params) {
    const picks = Object.entries(params).map(([axis, value]) => [`p-${axis}`, value]);
    return `${ROOT}history.html#${new URLSearchParams([['machine', machine], ['benchmark', benchmark], ...picks])}`;
}

/* The parameters of every configuration by name; the last axis varies fastest. */
const combinations = (axes) => Object.entries(axes).reduce(
    (found, [name, values]) => found.flatMap((one) => values.map((value) => ({...one, [name]: value}))), [{}]);

/* Every configuration of a benchmark with its value (null: not measured), and of times the useful bytes and the floating-point
   operations. */
function points(benchmark, values = {}) {
    const own = (list, at) => list?.[at] ?? null;
    return combinations(benchmark.axes).map((params, at) => ({
        params,
        value: own(values[benchmark.id], at),
        usefulBytes: own(benchmark.useful_bytes, at),
        flops: own(benchmark.flops, at),
    }));
}

/* The points whose parameters have the given values. */
const where = (found, fixed) => found.filter(
    ({params}) => Object.entries(fixed).every(([name, value]) => params[name] === value));

/* The values of one parameter, in the order of the axis, that some point with a value has. */
const measured = (found, name) => [...new Set(found.filter(({value}) => value !== null).map(({params}) => params[name]))];

/* The number of elements of a size such as "256x256" or "65536". */
const elements = (place) => place.split('x').reduce((product, side) => product * Number(side), 1);

/* The places along an axis, by size, at which some point has a value. */
const placesOf = (found, axis) => measured(found, axis).sort((one, other) => elements(one) - elements(other) || 0);

/* Whether the lines of a benchmark's figures are kernels; else they are dtypes. */
const ofKernels = ({lines}) => lines !== null && lines !== 'dtype';

/* The name of a line; a kernel without reference is marked. */
const label = (index, benchmark, value) => index.unverified.includes(ofKernels(benchmark) ? value : benchmark.kernel)
    ? `${value}, not verified` : value;

/* The value of each axis: the picked one if it was measured, or else the one of the summary. */
const fixedAt = (benchmark, axes, picks, found) => Object.fromEntries(axes.filter((axis) => axis in benchmark.axes).map((axis) => [
    axis, measured(found, axis).includes(picks[axis]) ? picks[axis] : benchmark.chosen[axis]]));

/* A title of texts and of values by axis; the axis is named if its value is a number. */
const titled = (...parts) => parts.flatMap((part) => typeof part === 'string' ? [part] : Object.entries(part).map(
    ([axis, value]) => /^\d+$/.test(value) ? `${axis} ${value}` : value)).join(', ');

/* Useful GB/s, or GFLOP/s, of a time in seconds; null without an amount or a time. */
const rateOf = (amount, seconds) => amount === null || seconds === null ? null : amount / seconds / 1e9;
const rate = ({usefulBytes, value}) => rateOf(usefulBytes, value);
const gflops = ({flops, value}) => rateOf(flops, value);

/* The benchmarks of a kind: `timed`, `control`, `counted` or `compiled`. */
const ofKind = (index, kind) => Object.values(index.benchmarks).filter((one) => one.kind === kind);

/* The number of values of the benchmarks that a commit has, and whether it has any. */
const count = (commit, benchmarks) => commit.has.reduce(
    (total, id, place) => total + (benchmarks.some((one) => one.id === id) ? commit.values[place] : 0), 0);
const has = (commit, benchmarks) => benchmarks.some(({id}) => commit.has.includes(id));

/* A machine's commits that have values of some benchmarks. */
const commitsWith = (machine, benchmarks) => machine.commits.filter((commit) => has(commit, benchmarks));

/* The newest of the commits with at least half as many values of the benchmarks as any: a run in part would leave most of a page
   blank. */
function fullest(commits, benchmarks) {
    const most = Math.max(...commits.map((commit) => count(commit, benchmarks)));
    return commits.findLast((commit) => 2 * count(commit, benchmarks) >= most);
}

/* The GPUs that took times of the benchmarks on a commit, by the first digits of their UUIDs. */
const gpusOf = (commit, benchmarks) => Object.keys(commit.gpus).filter(
    (gpu) => benchmarks.some(({id}) => commit.gpus[gpu].includes(id)));

/* The relative change up to which a time of one GPU is the same, by a machine's thresholds. */
const noiseOf = (seconds, {noise}) => noise.find(([least]) => seconds >= least)[1];

const short = (commit) => commit.commit.slice(0, 8);
const day = (commit) => new Date(commit.date).toISOString().slice(0, 10);
