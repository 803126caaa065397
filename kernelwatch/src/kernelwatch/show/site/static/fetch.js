// The figures of the L2 fetch granularity: the times with so many bytes a miss, beside the sectors that a request needs.
'use strict';

const NEEDED = '.track_load_sectors';
const LOWER = 'µs, lower is better';

/* Draw a figure for each kernel. `fetching` are {benchmark, found} of one commit, for each measured limit of the granularity. */
function drawFetchFigures(display, index, picks, fetching, countedValues) {
    Object.values(Object.groupBy(fetching, ({benchmark}) => benchmark.kernel)).forEach((limits) => {
        const counted = ofKind(index, 'counted').find(
            ({kernel, name}) => kernel === limits[0].benchmark.kernel && name.endsWith(NEEDED));
        const needed = counted === undefined ? [] : points(counted, countedValues).filter(({value}) => value !== null);
        drawFetchFigure(display, limits.toSorted((left, right) => left.benchmark.fetched - right.benchmark.fetched), picks, needed);
    });
}

function drawFetchFigure(display, limits, picks, needed) {
    const [{benchmark, found}] = limits;
    const steps = benchmark.along === null ? [] : placesOf(found, benchmark.along);
    const axis = steps.length > 1 ? benchmark.along : 'dtype';
    const fixed = fixedAt(benchmark, Object.keys(benchmark.axes).filter((name) => name !== axis), picks, found);
    const places = axis === 'dtype' ? measured(found, axis) : steps;
    const findMicroseconds = (list, place) => where(list, {...fixed, [axis]: place}).map(({value}) => value * 1e6)[0] ?? null;
    const findNeeded = (place) => needed.find(({params}) => Object.entries(params).every(
        ([name, value]) => ({...fixed, [axis]: place})[name] === value))?.value ?? null;
    const sectors = places.map(findNeeded);
    const series = limits.map(({benchmark: {fetched}, found: limitPoints}) => {
        const values = places.map((place) => findMicroseconds(limitPoints, place));
        const name = `${fetched} bytes a miss`;
        return {name, values, titles: values.map((value, row) => value === null ? null : `${places[row]}, ${name}: ${digits(value)} µs`)};
    });
    const title = titled(benchmark.kernel, 'by L2 fetch granularity', fixed);
    const rows = places.map((place, row) => [
        place, ...series.map(({values}) => isValue(values[row]) ? values[row].toFixed(1) : null), digits(sectors[row])]);
    const chart = axis === 'dtype' ? bars : lines;
    const labels = {places, label: `${title}: µs by ${axis}; the table has the values`};
    figure(display, title, 'DRAM gives so many bytes for each miss of the L2 cache: cudaLimitMaxL2FetchGranularity. The sectors that a ' +
        'request needs are the same with each limit.', (container) => {
        const [left, right] = [element('div', {}), element('div', {})];
        container.classList.add('pair');
        container.append(left, right);
        chart(left, {...labels, xTitle: axis === 'dtype' ? LOWER : axis, yTitle: LOWER, series});
        if (sectors.some(isValue)) {
            const titles = sectors.map((value, row) => `${places[row]}: ${digits(value)} sectors a load request`);
            chart(right, {
                ...labels, label: `${title}: sectors needed by ${axis}`, xTitle: axis === 'dtype' ? 'sectors needed' : axis,
                yTitle: 'sectors needed', series: [{name: 'sectors needed a load request', values: sectors, titles}],
            });
        }
    }, table(title, [axis, ...limits.map(({benchmark: {fetched}}) => `µs, ${fetched} bytes`), 'sectors needed'], rows));
}
