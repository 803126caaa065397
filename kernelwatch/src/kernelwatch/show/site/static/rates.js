// What the figures of the page Bandwidth share: shares of the peak, and the comparison with another commit.
'use strict';

(function (coalescing) {
    const {data, charts} = coalescing;

    /* The figures' context. `peak` is in GB/s or null; `scale` that of lines, `spacing` that of sizes; `other` is the commit that is compared with: its name (null: none)
       and `points(benchmark)`, its points. */
    function rates(peak, {scale, spacing}, other) {
        const percent = (rate) => rate === null || peak === null ? null : (100 * rate / peak).toFixed(1);

        const share = (rate) => percent(rate) === null ? `${charts.digits(rate)} GB/s` : `${percent(rate)} % of peak`;

        /* What a point says at the pointer. */
        function told(name, rate) {
            const share = percent(rate);
            return `${name}: ${charts.digits(rate)} GB/s` + (share === null ? '' : `, ${share} % of peak`);
        }

        /* The chart's value axis: up to the peak, with its share beside it, where the peak is known. */
        function axis() {
            return {scale, ...(peak === null ? {} : {top: peak, share: '% of theoretical peak'})};
        }

        /* What a benchmark's charts show. */
        function measure(benchmark) {
            return data.computes(benchmark) ? {
                unit: 'GFLOP/s', of: data.gflops, told: (name, rate) => `${name}: ${charts.digits(rate)} GFLOP/s`, axis: {scale},
            } : {unit: 'useful GB/s', of: data.rate, told, axis: axis()};
        }

        /* The rate of the same configuration on the commit that is compared with, or null. */
        function before(benchmark, point, of = data.rate) {
            const found = point === null ? undefined : data.where(other.points(benchmark), point.params)[0];
            return found === undefined ? null : of(found);
        }

        /* A point's cells: µs, GB/s, % of peak, and GFLOP/s where the benchmark's kernels compute; and the last ones,
           where commits are compared. */
        const computes = (benchmark) => (benchmark.flops || []).some((flops) => flops !== null);
        const cells = (benchmark, point) => [
            (point.value * 1e6).toFixed(1), charts.digits(data.rate(point)), percent(data.rate(point)),
            ...(computes(benchmark) ? [charts.digits(data.gflops(point))] : []),
        ];
        const headers = (benchmark) => ['µs', 'GB/s', '% of peak', ...(computes(benchmark) ? ['GFLOP/s'] : [])];
        const comparedHeaders = other.name === null ? [] : [`${other.name}, GB/s`, 'ratio'];

        function compared(benchmark, point) {
            const rate = before(benchmark, point);
            const ratio = rate === null ? null : (data.rate(point) / rate).toFixed(3);
            return other.name === null ? [] : [charts.digits(rate), ratio];
        }

        /* Where numbers lie on a logarithmic axis, if one is chosen and can be had. */
        const positions = (numbers) => spacing === charts.LOG && numbers.every((one) => one > 0) ? {positions: numbers} : {};

        return {
            told, axis, positions, measure, before, share, cells, headers, compared, comparedHeaders,
            otherName: other.name === null ? undefined : `commit ${other.name}`,
        };
    }

    coalescing.rates = rates;
})(window.coalescing);
