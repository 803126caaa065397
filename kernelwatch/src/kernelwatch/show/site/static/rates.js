// What the figures of the page Bandwidth share: shares of the peak, and the comparison with another commit.
'use strict';

(function (coalescing) {
    const {data, charts} = coalescing;

    /* The figures' context. `peak` is in GB/s or null; `scale` that of lines, `spacing` that of sizes; `other` is the commit
       that is compared with: its name (null: none) and `points(benchmark)`, its points. */
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
        const headersOf = (benchmark) => ['µs', 'GB/s', '% of peak', ...(computes(benchmark) ? ['GFLOP/s'] : [])];
        const comparedHeaders = other.name === null ? [] : [`${other.name}, GB/s`, 'ratio'];

        function compared(benchmark, point) {
            const rate = before(benchmark, point);
            const ratio = rate === null ? null : (data.rate(point) / rate).toFixed(3);
            return other.name === null ? [] : [charts.digits(rate), ratio];
        }

        /* A line over the places of an axis: of each the point or null, what is shown of it, and what it is compared with. */
        function line(name, axis, places, some, shown, beside) {
            const at = places.map((place) => data.where(some, {[axis]: place})[0] || null);
            const values = at.map((point) => point && shown.of(point));
            return {
                name, at, values, dashed: at.map(beside),
                titles: values.map((rate, index) => shown.told(`${name}, ${axis} ${places[index]}`, rate)),
            };
        }

        /* The figure of such lines. The table has a row a point: its line, its place, its cells, and those of `more`, of a point
           and what it is compared with. `headers` are those of the line's name and of `more`. */
        function lines(display, benchmark, figure) {
            const {title, note, axis, xTitle = axis, places, series, shown, headers: [named, ...others], more, numbers} = figure;
            const rows = series.flatMap(({name, at, dashed}) => at.flatMap((point, index) => point === null ? [] : [[
                name, places[index], ...cells(benchmark, point), ...more(point, dashed[index])]]));
            coalescing.view.figure(display, title, note, (chart) => charts.lines(chart, {
                label: `${title}: ${shown.unit} by ${axis}; the table has the values`,
                xTitle, yTitle: shown.unit, places, series, dashedName: figure.dashedName, boundary: figure.boundary,
                ...(spacing === charts.LOG && numbers.every((one) => one > 0) ? {positions: numbers} : {}),
                ...shown.axis,
            }), coalescing.view.table(title, [named, xTitle, ...headersOf(benchmark), ...others], rows));
        }

        return {
            told, measure, before, share, line, lines, cells, headers: headersOf, compared, comparedHeaders,
            otherName: other.name === null ? undefined : `commit ${other.name}`,
        };
    }

    coalescing.rates = rates;
})(window.coalescing);
