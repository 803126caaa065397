// The figures of the L2 fetch granularity on the page Bandwidth: times by the bytes that a miss of the L2 cache fetches, next to the
// sectors that a load request needs.
'use strict';

const NEEDED = '.track_load_sectors';
const LOWER = 'µs, lower is better';

/** Draw a figure for each kernel: its times with each limit of the granularity in `limits`, and its counted sectors on one commit.
 * @type {(display: HTMLElement, index: Index, picks: Params, limits: Sweep[], countedValues: Object<number, ?number[]>) => void} */
function drawFetchFigures(display, index, picks, limits, countedValues) {
    Object.values(Object.groupBy(limits, ({benchmark}) => benchmark.kernel)).forEach((kernelLimits) => {
        const counted = filterKind(index, 'counted').find(
            ({kernel, name}) => kernel === kernelLimits[0].benchmark.kernel && name.endsWith(NEEDED));
        const needed = counted === undefined ? [] : listPoints(counted, countedValues).filter(({value}) => value !== null);
        drawFetchFigure(display, kernelLimits.toSorted((left, right) => left.benchmark.fetched - right.benchmark.fetched), picks, needed);
    });
}

/* Draw the figure of one kernel. `limits` are its sweeps, the smallest limit first; `needed` has its counted sectors. */
function drawFetchFigure(display, limits, picks, needed) {
    const [{benchmark, points}] = limits;
    const steps = benchmark.along === null ? [] : listPlaces(points, benchmark.along);
    const axis = steps.length > 1 ? benchmark.along : 'dtype';
    const fixed = fixAxes(benchmark, Object.keys(benchmark.axes).filter((name) => name !== axis), picks, points);
    const places = axis === 'dtype' ? listMeasured(points, axis) : steps;
    const findMicroseconds = (limitPoints, place) => filterPoints(
        limitPoints, {...fixed, [axis]: place}).map(({value}) => value * 1e6)[0] ?? null;
    const findNeeded = (place) => needed.find(({params}) => Object.entries(params).every(
        ([name, value]) => ({...fixed, [axis]: place})[name] === value))?.value ?? null;
    const sectors = places.map(findNeeded);
    const series = limits.map(({benchmark: {fetched}, points: limitPoints}) => {
        const values = places.map((place) => findMicroseconds(limitPoints, place));
        const name = `${fetched} bytes per miss`;
        return {name, values, titles: values.map(
            (value, row) => value === null ? null : `${places[row]}, ${name}: ${formatNumber(value)} µs`)};
    });
    const title = joinTitle(benchmark.kernel, 'by L2 fetch granularity', fixed);
    const rows = places.map((place, row) => [
        place, ...series.map(({values}) => isValue(values[row]) ? values[row].toFixed(1) : null), formatNumber(sectors[row])]);
    const drawChart = axis === 'dtype' ? drawBars : drawLines;
    const labels = {places, label: `${title}: µs by ${axis}; the table has the values`};
    addFigure(display, title, 'cudaLimitMaxL2FetchGranularity limits the bytes that a miss of the L2 cache fetches from DRAM. The sectors that ' +
        'a request needs do not depend on it.', (container) => {
        const [left, right] = [makeElement('div', {}), makeElement('div', {})];
        container.classList.add('pair');
        container.append(left, right);
        drawChart(left, {...labels, xTitle: axis === 'dtype' ? LOWER : axis, yTitle: LOWER, series});
        if (sectors.some(isValue)) {
            const titles = sectors.map((value, row) => `${places[row]}: ${formatNumber(value)} sectors per load request`);
            drawChart(right, {
                ...labels, label: `${title}: sectors needed by ${axis}`, xTitle: axis === 'dtype' ? 'sectors needed' : axis,
                yTitle: 'sectors needed', series: [{name: 'sectors needed per load request', values: sectors, titles}],
            });
        }
    }, makeTable(title, [axis, ...limits.map(({benchmark: {fetched}}) => `µs, ${fetched} bytes`), 'sectors needed'], rows));
}
