// The page Bandwidth: useful GB/s and their share of the theoretical peak.
'use strict';

const COPY = 'plain copy';

page(async function (chosen, display) {
    const index = await loadIndex();
    const timed = ofKind(index, 'timed').filter((one) => !one.isolated);
    const name = chosen.machine(index, timed);
    if (name === null) {
        paragraph(display, 'No machine has times yet: they need a GPU.');
        return;
    }
    const machine = index.machines[name];
    const commit = chosen.commit(machine, timed);
    const values = await valuesAt(machine, commit, timed);
    const all = timed.map((benchmark) => ({benchmark, found: points(benchmark, values).filter(({value}) => value !== null)}));
    const swept = all.filter(({benchmark}) => !benchmark.plain_copy);
    const picks = picked(chosen, swept.map(({benchmark}) => benchmark).filter((one) => commitsWith(machine, [one]).length > 0));
    chosen.show();
    const gpus = gpusOf(commit, timed);
    paragraph(display, facts(commit, gpus));
    noticeGpus(display, index, gpus);
    const missing = swept.filter(({found}) => found.length === 0).map(({benchmark}) => benchmark.family);
    const [fetching, others] = [true, false].map((isFetching) => swept.filter(
        ({benchmark, found}) => found.length > 0 && benchmark.fetched > 0 === isFetching));
    if (missing.length > 0) {
        paragraph(display, `Not measured at this commit: ${missing.join('; ')}. What else was is on the page History.`);
    }
    const context = {
        index, picks, copied: all.filter(({benchmark}) => benchmark.plain_copy).flatMap(({found}) => found),
        peak: commit.peak_bytes_per_second && commit.peak_bytes_per_second / 1e9,
    };
    others.forEach((sweep) => figures(display, context, sweep));
    if (fetching.length > 0) {
        drawFetchFigures(display, index, picks, fetching, await valuesAt(machine, commit, ofKind(index, 'counted')));
    }
});

/* The values that figures show: flags, the dtype of kernels, and one value of each further axis. The options depend on the machine
   only, so they stay when the commit changes. */
function picked(chosen, swept) {
    const kernels = swept.filter(ofKernels);
    const having = (axis) => swept.filter((one) => one.own.includes(axis) && (ofKernels(one) || axis !== one.along));
    const pick = (axis, name, some) => [axis, chosen.pick(
        `p-${axis}`, name, [...new Set(some.flatMap(({axes}) => axes[axis] || []))],
        [...kernels, ...swept].map((one) => one.chosen[axis]).find(Boolean))];
    const further = [...new Set(swept.flatMap(({own}) => own))].filter((axis) => having(axis).some(({axes}) => axes[axis].length > 1));
    return Object.fromEntries([
        pick('flags', 'Flags', swept), pick('dtype', 'Dtype of the kernels', kernels), ...further.map((axis) => pick(axis, axis, having(axis))),
    ]);
}

/* Draw bars by kernel, or by dtype if there is only one place; and lines along the places. */
function figures(display, {index, picks, copied, peak}, {benchmark, found}) {
    const {along, own} = benchmark;
    const isNear = found.some((point) => rate(point) > 0.1 * peak); // otherwise all marks would lie on the axis
    const percent = (value) => value === null || peak === null ? null : (100 * value / peak).toFixed(1);
    const [unit, of] = benchmark.computes ? ['GFLOP/s', gflops] : ['useful GB/s', rate];
    const works = (benchmark.flops ?? []).some(isValue);
    const shown = {
        measure: {
            unit, of,
            told: (what, value) => `${what}: ${digits(value)} ${unit.replace('useful ', '')}` +
                (benchmark.computes || peak === null ? '' : `, ${percent(value)} % of peak`),
            axis: benchmark.computes || peak === null || !isNear ? {} : {top: peak, share: '% of theoretical peak'},
        },
        headers: ['µs', 'GB/s', '% of peak', ...works ? ['GFLOP/s'] : []],
        cells: (point) => [
            (point.value * 1e6).toFixed(1), digits(rate(point)), percent(rate(point)), ...works ? [digits(gflops(point))] : []],
    };
    const every = (benchmark.lines === null ? [''] : measured(found, benchmark.lines)).map((value) => ({
        name: label(index, benchmark, value || benchmark.kernel), key: value === '' ? {} : {[benchmark.lines]: value},
    }));
    const places = along === null ? [] : placesOf(found, along);
    const at = (axes) => fixedAt(benchmark, axes.filter((axis) => axis !== benchmark.lines), picks, found);
    if (ofKernels(benchmark) || places.length < 2) {
        overKernels(display, copied, shown, benchmark, found, every, at([...own, 'dtype']));
    }
    if (places.length > 1) {
        overPlaces(display, copied, shown, benchmark, found, every, at([...own, 'dtype', 'flags'].filter((axis) => axis !== along)), places);
    }
}

/* Draw a bar for each kernel and set of flags; the copy of as many bytes is the ceiling. */
function overKernels(display, copied, {headers, ...shown}, benchmark, found, every, fixed) {
    const here = where(found, fixed);
    const places = every.filter(({key}) => where(here, key).length > 0);
    const copies = places.map(({key}) => copied.find(
        ({params}) => Object.entries(params).every(([axis, value]) => ({...fixed, ...key})[axis] === value)));
    const ceilings = copies.map((copy) => copy === undefined || shown.measure.of !== rate ? null : rate(copy)); // a copy has no GFLOP/s
    const flags = 'flags' in benchmark.axes ? measured(here, 'flags') : [benchmark.title];
    sweep(display, bars, {
        ...shown, title: titled(benchmark.family, fixed), note: benchmark.note, places, ceilings,
        lines: flags.map((name) => ({name, points: 'flags' in benchmark.axes ? where(here, {flags: name}) : here})),
        headers: [ofKernels(benchmark) ? 'kernel' : 'dtype', 'flags', ...headers],
        ceilingName: isValue(ceilings[0]) ? shown.measure.told(COPY, ceilings[0]) : `${COPY} of the same size`,
    });
}

/* Draw a line along the places for each kernel or dtype, and one for the copy. */
function overPlaces(display, copied, {headers, ...shown}, benchmark, found, every, fixed, places) {
    const {along} = benchmark;
    const here = where(found, fixed);
    const copy = ofKernels(benchmark) && shown.measure.of === rate ? [{name: COPY, points: where(copied, {dtype: fixed.dtype})}] : [];
    sweep(display, lines, {
        ...shown, title: titled(benchmark.family, `by ${along}`, fixed),
        lines: [...every.map(({name, key}) => ({name, points: where(here, key)})), ...copy],
        note: `${benchmark.note} ${benchmark.in_l2 ? 'Rates from the L2 cache may exceed the peak, which is that of DRAM.'
            : 'Every launch finds its data in DRAM. Small sizes move too few bytes to fill the GPU.'}`.trim(),
        places: places.map((place) => ({name: place, key: {[along]: place}})),
        headers: [ofKernels(benchmark) ? 'kernel' : 'dtype', along, ...headers],
    });
}

function facts({gpu, driver, nvcc, peak_bytes_per_second: peak}, gpus) {
    return [
        gpu, gpus.length > 0 && `GPU ${gpus.join(', ')}`, driver && `driver ${driver}`, nvcc,
        peak && `theoretical peak ${digits(peak / 1e9)} GB/s`,
    ].filter(Boolean).join(' · ') + '. GB/s are useful bytes over time: each element counts once in and once out.';
}
