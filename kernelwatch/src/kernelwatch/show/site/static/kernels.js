// The figures of the page Bandwidth that show the kernels of an operation: bars by kernel, size and flags, and lines by size.
'use strict';

(function (coalescing) {
    const {data, view, charts} = coalescing;
    const COPY = 'plain copy';

    /* How many elements a size has, such as "256x256" or "65536". */
    const elements = (place) => place.split('x').reduce((product, side) => product * Number(side), 1);

    const bySizes = (places) => [...places].sort((one, other) => elements(one) - elements(other));

    /* Bars of one size, or of all of them, with the copy of as many bytes as the ceiling. */
    function bySize(display, rates, [name, benchmark], found, copied, title) {
        if (found.length === 0) {
            return;
        }
        const axis = data.sizeAxis(benchmark);
        const sizes = bySizes(data.measured(found, axis));
        const kernels = data.measured(found, 'kernel');
        const shown = rates.measure(benchmark);
        const groups = sizes.flatMap((size) => kernels.map((kernel) => ({[axis]: size, kernel})));
        const named = (group) => sizes.length === 1 ? group.kernel : `${group.kernel}, ${group[axis]}`;
        const series = data.measured(found, 'flags').map(function (flags) {
            const at = groups.map((group) => data.where(found, {...group, flags})[0] || null);
            const values = at.map((point) => point && shown.of(point));
            return {
                name: flags,
                values,
                marks: at.map((point) => rates.before(name, point, shown.of)),
                titles: values.map((rate, row) => shown.told(`${named(groups[row])}, ${flags}`, rate)),
            };
        });
        const ceilings = groups.map(function (group) {
            const copy = data.where(copied, {[axis]: group[axis]})[0];
            return copy === undefined || shown.of !== data.rate ? null : data.rate(copy); // a copy computes nothing
        });
        const size = (point) => sizes.length === 1 ? [] : [point.params[axis]]; // one alone stands in the title
        const rows = found.map((point) => [
            point.params.kernel, ...size(point), point.params.flags, ...rates.cells(benchmark, point), ...rates.compared(name, point),
        ]);
        copied.filter((copy) => sizes.includes(copy.params[axis])).forEach((copy) => rows.push(
            [COPY, ...size(copy), null, ...rates.cells(benchmark, copy), ...rates.comparedHeaders.map(() => null)]));
        const headers = ['kernel', ...(sizes.length === 1 ? [] : [axis]), 'flags', ...rates.headers(benchmark), ...rates.comparedHeaders];
        view.figure(display, title, benchmark.note, (chart) => charts.bars(chart, {
            label: `${title}: ${shown.unit} by kernel, size and flags; the table has the values`,
            xTitle: shown.unit,
            groups: groups.map(named),
            series,
            marksName: rates.otherName,
            ceilings,
            ceilingName: sizes.length === 1 && ceilings[0] !== null
                ? rates.told(COPY, ceilings[0]) : `${COPY} of the same size, GB/s`,
            ...shown.axis,
        }), view.table(title, headers, rows));
    }

    /* Lines over the sizes, one a kernel, and one for the copy; dashed the commit that is compared with, or else the same
       from the L2 cache: `cached`. `l2` is what that cache holds, in bytes, or null. */
    function overSizes(display, rates, [name, benchmark, found], [copy, copied], cached, l2, title) {
        const axis = data.sizeAxis(benchmark);
        const places = bySizes(data.measured(found, axis));
        if (places.length < 2) {
            return;
        }
        const same = (point) => point === null ? undefined : data.where(cached, point.params)[0];
        const shown = rates.measure(benchmark);
        const dashed = rates.otherName === undefined
            ? {name: 'from the L2 cache', rate: (_, point) => same(point) === undefined ? null : shown.of(same(point))}
            : {name: rates.otherName, rate: (of, point) => rates.before(of, point, shown.of)};
        const line = (label, of, some) => rates.line(label, axis, places, some, shown, (point) => dashed.rate(of, point));
        const series = data.measured(found, 'kernel').map((kernel) => line(kernel, name, data.where(found, {kernel})));
        if (shown.of === data.rate && copied.some((point) => places.includes(point.params[axis]))) {
            series.push(line(COPY, copy, copied));
        }
        const bytes = (place) => data.where(found, {[axis]: place})[0].usefulBytes;
        const outside = l2 === null ? -1 : places.findIndex((place) => bytes(place) > l2);
        rates.lines(display, benchmark, {
            title, axis, places, series, shown, note: told(l2), dashedName: dashed.name,
            headers: ['kernel', `${dashed.name}, ${shown.unit.replace('useful ', '')}`],
            more: (point, beside) => [charts.digits(beside)],
            numbers: places.map(elements),
            boundary: outside > 0 ? {before: outside, name: `L2: ${l2 / 2 ** 20} MiB`} : undefined,
        });
    }

    function told(l2) {
        return 'Every launch finds its data in DRAM: the buffers rotate through three times the L2 cache. ' + (l2 === null
            ? 'How much that cache holds was not stored with the run that measured this commit, so it is not marked.'
            : 'Left of the mark, input and output together would fit into that cache.') +
            ' Small sizes move too few bytes to fill the GPU. Rates from the L2 cache may exceed the peak, which is that of DRAM.';
    }

    coalescing.byKernel = {bySize, overSizes};
})(window.coalescing);
