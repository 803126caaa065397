// The figures of the page Bandwidth that show copies: by offset, and by stride.
'use strict';

(function (coalescing) {
    const {data, view, svg, lines} = coalescing;

    /* One line a dtype, and what is predicted or what another commit had. `name` is the axis, `found` the points of one
       flag set that have a value. */
    function copies(display, rates, benchmark, found, name, flags, note) {
        if (found.length === 0) {
            view.paragraph(display, `Copies by ${name} were not measured${flags === undefined ? '' : ` with ${flags}`}.`);
            return;
        }
        const places = data.measured(found, name);
        const rows = [];
        const series = data.measured(found, 'dtype').map(function (dtype) {
            const at = places.map((place) => data.where(found, {dtype, [name]: place})[0] || null);
            // The prediction scales the rate of the place that costs nothing: offset 0, stride 1.
            const base = at[0] === null ? null : data.rate(at[0]) / at[0].share;
            const values = at.map((point) => point && data.rate(point));
            const predicted = at.map((point) => point === null || base === null ? null : base * point.share);
            at.forEach(function (point, index) {
                if (point !== null) {
                    rows.push([
                        dtype, places[index], ...rates.cells(point), svg.figure(predicted[index]),
                        ...rates.compared(benchmark, point),
                    ]);
                }
            });
            return {
                name: dtype,
                values,
                dashed: rates.otherName === undefined ? predicted : at.map((point) => rates.before(benchmark, point)),
                titles: values.map((rate, index) => rates.told(`${dtype}, ${name} ${places[index]}`, rate)),
            };
        });
        const title = `Copy by ${name}`;
        const headers = [
            'dtype', `${name}, elements`, ...rates.headers, 'predicted, GB/s', ...rates.comparedHeaders,
        ];
        view.figure(display, title, note, (chart) => lines(chart, {
            label: `${title}: useful GB/s by ${name}, one line a dtype; the table has the values`,
            xTitle: `${name}, elements`,
            yTitle: 'useful GB/s',
            places,
            series,
            dashedName: rates.otherName || 'predicted by 32-byte sectors',
            ...rates.axis(found),
        }), view.table(`${title}, ${flags}`, headers, rows));
    }

    coalescing.copies = copies;
})(window.coalescing);
