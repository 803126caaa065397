// What the publisher wrote, in pieces: each is loaded once, when it is shown, and looked up by the names of parameters.
'use strict';

(function (coalescing) {
    const pieces = {};
    const UNVERIFIED = 'not verified';

    function piece(place) {
        if (pieces[place] === undefined) {
            pieces[place] = coalescing.files.load(`project/data/${place}.js?made=${document.documentElement.dataset.made}`);
        }
        return pieces[place];
    }

    const index = () => piece('index');
    const values = (machine, benchmark) => piece(`values/${machine.id}/${benchmark.id}`);
    const cubins = (machine) => piece(`cubins/${machine.id}`);
    const noise = (machine) => piece(`noise/${machine.id}`);
    const compilers = (machine) => piece(`compilers/${machine.id}`);

    /* The values of some benchmarks on one of a machine's commits, by name. */
    async function commit(known, machine, one, names) {
        const place = machine.commits.findIndex((each) => each.commit === one.commit);
        const found = names.filter((name) => has(known, one, [name]));
        const pieces = await Promise.all(found.map((name) => values(machine, known.benchmarks[name])));
        return Object.fromEntries(found.map((name, at) => [name, pieces[at].values[place] || []]));
    }

    /* What is known of one configuration at the commits of `shown`, places in machine.commits: its values, the GPUs that took
       them where several did, and the commits whose numbers they are where it was not measured. */
    function series(piece, configuration, shown) {
        const at = (what) => shown.map((place) => {
            const found = piece[what] === undefined ? null : piece[what][place];
            return found === null || found[configuration] === undefined ? null : found[configuration];
        });
        return {values: at('values'), gpus: at('gpus'), origins: at('origins')};
    }

    /* The parameters of every configuration by name; the last axis varies fastest. */
    function combinations(axes) {
        let found = [{}];
        Object.entries(axes).forEach(function ([name, values]) {
            found = found.flatMap((one) => values.map((value) => ({...one, [name]: value})));
        });
        return found;
    }

    /* Every configuration of a benchmark, with its value among a commit's `values` (null: not measured), and for times
       the useful bytes, the floating-point operations and the share that 32-byte sectors leave. */
    function points(known, values, name) {
        const benchmark = known.benchmarks[name];
        if (benchmark === undefined) {
            return [];
        }
        const own = (list, at) => list === undefined || list[at] === undefined ? null : list[at];
        return combinations(benchmark.axes).map((params, at) => ({
            params,
            value: own(values[name], at),
            usefulBytes: own(benchmark.useful_bytes, at),
            flops: own(benchmark.flops, at),
            share: own(benchmark.predicted_share, at),
        }));
    }

    /* The points whose parameters have the given values. */
    function where(found, fixed) {
        return found.filter(
            (point) => Object.entries(fixed).every(([name, value]) => point.params[name] === value));
    }

    /* The values of one parameter, in the order of the axis, that some point with a value has. */
    function measured(found, name) {
        return [...new Set(found.filter((point) => point.value !== null).map((point) => point.params[name]))];
    }

    /* The axes beside those that any benchmark of kernels may have, and beside the one of its lines: lengths, offsets. */
    const ownAxes = (benchmark) => Object.keys(benchmark.axes).filter(
        (axis) => axis !== benchmark.lines && !['dtype', 'flags', 'arch'].includes(axis));

    /* Whether the lines of a benchmark's figures are kernels; else they are dtypes. */
    const ofKernels = ({lines}) => lines !== null && lines !== 'dtype';

    /* What a line is called: a kernel without reference is marked wherever its numbers stand. */
    function label(known, benchmark, value) {
        const kernel = ofKernels(benchmark) ? value : benchmark.kernel;
        return known.unverified.includes(kernel) ? `${value}, ${UNVERIFIED}` : value;
    }

    /* How many elements a size has, such as "256x256" or "65536". */
    const elements = (place) => place.split('x').reduce((product, side) => product * Number(side), 1);

    /* The places along an axis, by size, at which some point has a value. */
    const places = (found, axis) => measured(found, axis).sort((one, other) => elements(one) - elements(other) || 0);

    /* Of axes the values to look at: those picked, or else those that tell most of the benchmark. */
    const fixed = (benchmark, axes, picks, found) => Object.fromEntries(axes.filter((axis) => axis in benchmark.axes).map((axis) => [
        axis, measured(found, axis).includes(picks[axis]) ? picks[axis] : benchmark.chosen[axis]]));

    /* A title: texts, and values by axis, with its name where they are numbers. */
    const title = (...parts) => parts.flatMap((part) => typeof part === 'string' ? [part] : Object.entries(part).map(
        ([axis, value]) => /^\d+$/.test(value) ? `${axis} ${value}` : value)).join(', ');

    /* What a benchmark measures, without how. */
    const family = (benchmark) => benchmark.title.replace(/(, counted)?:.*$/, '');

    /* The names of the benchmarks of a kind, `timed`, `control`, `counted` or `compiled`. */
    const ofKind = (known, kind) => Object.keys(known.benchmarks).filter((name) => known.benchmarks[name].kind === kind);

    /* Useful GB/s: what is stored are seconds, of which fewer are better. */
    function rate(point) {
        return point.value === null || point.usefulBytes === null ? null : point.usefulBytes / point.value / 1e9;
    }

    /* GFLOP/s, or null of what only moves data. */
    function gflops(point) {
        return point.value === null || point.flops === null ? null : point.flops / point.value / 1e9;
    }

    /* Whether a benchmark's kernels make more operations than they move bytes, as products do: GB/s tell little of them. */
    function computes({axes, flops = [], useful_bytes: bytes = []}) {
        return combinations(axes).some((_, at) => flops[at] > bytes[at]);
    }

    /* Whether any of the benchmarks has a value on a commit. */
    function has(known, one, names) {
        return names.some((name) => known.benchmarks[name] !== undefined && one.has.includes(known.benchmarks[name].id));
    }

    /* How many values of benchmarks a commit has. */
    function count(known, one, names) {
        const ids = names.flatMap((name) => known.benchmarks[name] === undefined ? [] : [known.benchmarks[name].id]);
        return one.has.reduce((total, id, place) => total + (ids.includes(id) ? one.values[place] : 0), 0);
    }

    coalescing.data = {
        index, values, commit, series, cubins, noise, compilers, combinations, points, where, measured, ownAxes, ofKernels,
        label, elements, places, fixed, title, family, ofKind, rate, gflops, computes, has, count,
    };
})(window.coalescing);
