// A figure of the page Bandwidth that shows one kernel along an argument of it, such as an offset or a stride.
'use strict';

(function (coalescing) {
    const {data, view, charts} = coalescing;

    /* One line a dtype, and what is predicted or what another commit had. `found` are the points of the benchmark `name`,
       of one flag set, that have a value. */
    function byArgument(display, rates, [name, benchmark], found, flags) {
        const axis = data.rowAxis(benchmark);
        const title = `${data.family(benchmark)}, by ${axis}`;
        if (found.length === 0) {
            view.paragraph(display, `${title}: not measured${flags === undefined ? '' : ` with ${flags}`}.`);
            return;
        }
        const places = data.measured(found, axis);
        const rows = [];
        const series = data.measured(found, 'dtype').map(function (dtype) {
            const at = places.map((place) => data.where(found, {dtype, [axis]: place})[0] || null);
            // The prediction scales the rate of the first place, which costs least.
            const base = at[0] === null || at[0].share === null ? null : data.rate(at[0]) / at[0].share;
            const values = at.map((point) => point && data.rate(point));
            const predicted = at.map((point) => point === null || base === null ? null : base * point.share);
            at.forEach(function (point, index) {
                if (point !== null) {
                    rows.push([
                        dtype, places[index], ...rates.cells(benchmark, point),
                        predicted[index] === null ? null : charts.digits(predicted[index]), ...rates.compared(name, point),
                    ]);
                }
            });
            return {
                name: dtype,
                values,
                dashed: rates.otherName === undefined ? predicted : at.map((point) => rates.before(name, point)),
                titles: values.map((rate, index) => rates.told(`${dtype}, ${axis} ${places[index]}`, rate)),
            };
        });
        const headers = [
            'dtype', `${axis}, elements`, ...rates.headers(benchmark), 'predicted, GB/s', ...rates.comparedHeaders,
        ];
        view.figure(display, title, `${benchmark.note} ${small(rates, found, axis)}`.trim(), (chart) => charts.lines(chart, {
            label: `${title}: useful GB/s, one line a dtype; the table has the values`,
            xTitle: `${axis}, elements`,
            yTitle: 'useful GB/s',
            places,
            series,
            dashedName: rates.otherName || 'predicted by 32-byte sectors',
            ...rates.positions(places.map(Number)),
            ...rates.axis(),
        }), view.table(`${title}, ${flags}`, headers, rows));
    }

    /* Why small elements stay far below the peak. */
    function small(rates, found, axis) {
        const first = data.where(found, {dtype: 'int8', [axis]: data.measured(found, axis)[0]})[0];
        return first === undefined ? '' : 'A thread moves one element, so as many elements take as many requests whatever their size: ' +
            `one of a warp asks for 32 bytes of int8, for 128 of float32 and for 512 of complex128. That is why int8 reaches ${
                rates.share(data.rate(first))} even where nothing is lost. A plain copy moves 16 bytes a thread.`;
    }

    coalescing.byArgument = byArgument;
})(window.coalescing);
