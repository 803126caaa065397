// What the publisher wrote, in pieces: each is loaded once, when it is shown, and looked up by the names of parameters.
'use strict';

(function (coalescing) {
    const pieces = {};

    function piece(place) {
        if (pieces[place] === undefined) {
            pieces[place] = coalescing.files.load(`project/data/${place}.js?made=${document.documentElement.dataset.made}`);
        }
        return pieces[place];
    }

    const index = () => piece('index');
    const commit = (machine, one) => piece(`commits/${machine.id}/${one.commit}`);
    const series = (machine, benchmark, row) => piece(`series/${machine.id}/${benchmark.id}/${row}`);
    const cubins = (machine) => piece(`cubins/${machine.id}`);
    const noise = (machine) => piece(`noise/${machine.id}`);
    const compilers = (machine) => piece(`compilers/${machine.id}`);

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

    /* The axes that every benchmark of kernels may have; of the others, the first one tells the points of a figure apart. */
    const COMMON = ['dtype', 'flags', 'arch'];
    const rowAxis = (benchmark) => Object.keys(benchmark.axes).find((axis) => !COMMON.includes(axis));

    /* The axis of sizes beside that of kernels; undefined where a benchmark has one size. */
    const sizeAxis = (benchmark) => Object.keys(benchmark.axes).find((axis) => axis !== 'kernel' && !COMMON.includes(axis));

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
        index, commit, series, cubins, noise, compilers, combinations, points, where, measured, rowAxis, sizeAxis, family,
        ofKind, rate, gflops, computes, has, count,
    };
})(window.coalescing);
