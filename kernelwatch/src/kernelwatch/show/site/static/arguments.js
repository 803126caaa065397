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
        const shown = rates.measure(benchmark);
        // The prediction scales the rate of the first place, which costs least.
        const predicted = function (point) {
            const [first] = point === null ? [] : data.where(found, {dtype: point.params.dtype, [axis]: places[0]});
            return first === undefined || first.share === null ? null : data.rate(first) / first.share * point.share;
        };
        const beside = (point) => rates.otherName === undefined ? predicted(point) : rates.before(name, point);
        rates.lines(display, benchmark, {
            title, axis, places, shown,
            xTitle: `${axis}, elements`,
            series: data.measured(found, 'dtype').map(
                (dtype) => rates.line(dtype, axis, places, data.where(found, {dtype}), shown, beside)),
            note: `${benchmark.note} ${small(rates, found, axis)}`.trim(),
            dashedName: rates.otherName || 'predicted by 32-byte sectors',
            headers: ['dtype', 'predicted, GB/s', ...rates.comparedHeaders],
            more: (point) => [charts.digits(predicted(point)), ...rates.compared(name, point)],
            numbers: places.map(Number),
        });
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
