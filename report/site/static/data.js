// What the publisher wrote: loaded once, and looked up by the names of parameters.
'use strict';

window.coalescing = {};

(function (coalescing) {
    let loading = null;

    /* The promise of project.json's content. */
    function load() {
        if (loading === null) {
            loading = $.ajax({
                url: 'project/project.json?timestamp=' + $.asv.main_timestamp,
                dataType: 'json',
                cache: true,
            }).fail(function () {
                loading = null;
            });
        }
        return loading;
    }

    /* Every configuration of a benchmark on a commit: its parameters by name, its value (null: not measured), and for
       times the useful bytes and the share that 32-byte sectors leave. The last axis varies fastest. */
    function points(data, commit, benchmark) {
        const described = data.benchmarks[benchmark];
        if (described === undefined) {
            return [];
        }
        const values = commit.values[benchmark] || [];
        let combinations = [{}];
        Object.entries(described.axes).forEach(function ([name, axis]) {
            combinations = combinations.flatMap((one) => axis.map((value) => ({...one, [name]: value})));
        });
        return combinations.map(function (params, index) {
            const bytes = described.useful_bytes === undefined ? null : described.useful_bytes[index];
            const share = described.predicted_share === undefined ? null : described.predicted_share[index];
            const value = values[index] === undefined ? null : values[index];
            return {params: params, value: value, usefulBytes: bytes, share: share};
        });
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

    /* Useful GB/s: what is stored are seconds, of which fewer are better. */
    function rate(point) {
        return point.value === null ? null : point.usefulBytes / point.value / 1e9;
    }

    /* Whether any of the benchmarks has a value on a commit. */
    function has(commit, benchmarks) {
        return benchmarks.some((name) => commit.values[name] !== undefined);
    }

    coalescing.data = {load, points, where, measured, rate, has};
})(window.coalescing);
