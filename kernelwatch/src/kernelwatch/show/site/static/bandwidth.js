// The page Bandwidth: useful GB/s and their share of the theoretical peak.
'use strict';

const COPY = 'plain copy';

runPage(async function (choices, display) {
    const index = await loadIndex();
    const timed = filterKind(index, 'timed').filter(({isolated}) => !isolated);
    const name = choices.pickMachine(index, timed);
    if (name === null) {
        addParagraph(display, 'No machine has times yet: they need a GPU.');
        return;
    }
    const machine = index.machines[name];
    const commit = choices.pickCommit(machine, timed);
    const values = await loadCommitValues(machine, commit, timed);
    const [copies, sweeps] = [true, false].map((isCopy) => timed.filter((benchmark) => Boolean(benchmark.plain_copy) === isCopy).map(
        (benchmark) => ({benchmark, points: listPoints(benchmark, values).filter(({value}) => value !== null)})));
    const picks = pickAxes(choices, sweeps.map(({benchmark}) => benchmark).filter(
        (benchmark) => filterCommits(machine, [benchmark]).length > 0));
    choices.showControls();
    const gpus = listGpus(commit, timed);
    addParagraph(display, describeMachine(commit, gpus));
    addGpuNotice(display, index, gpus);
    const missing = sweeps.filter(({points}) => points.length === 0).map(({benchmark}) => benchmark.family);
    if (missing.length > 0) {
        addParagraph(display, `Not measured at this commit: ${missing.join('; ')}. The page History has other commits.`);
    }
    const context = {
        index, picks, copies: copies.flatMap(({points}) => points), peak: commit.peak_bytes_per_second && commit.peak_bytes_per_second / 1e9,
    };
    const [fetchLimits, ordinary] = [true, false].map((hasLimit) => sweeps.filter(
        ({benchmark, points}) => points.length > 0 && benchmark.fetched > 0 === hasLimit));
    ordinary.forEach((sweep) => drawFigures(display, context, sweep));
    if (fetchLimits.length > 0) {
        const countedValues = await loadCommitValues(machine, commit, filterKind(index, 'counted'));
        drawFetchFigures(display, index, picks, fetchLimits, countedValues);
    }
});

/* Return the chosen value of each axis that figures fix: flags, the dtype of kernels, and further axes. The options depend only on
   the machine, so the choices stay when the commit changes. */
function pickAxes(choices, benchmarks) {
    const ofKernels = benchmarks.filter(hasKernelLines);
    const filterAxis = (axis) => benchmarks.filter(
        (benchmark) => benchmark.own.includes(axis) && (hasKernelLines(benchmark) || axis !== benchmark.along));
    const pickAxis = (axis, name, shown) => [axis, choices.pickOption(
        `p-${axis}`, name, [...new Set(shown.flatMap(({axes}) => axes[axis] || []))],
        [...ofKernels, ...benchmarks].map(({chosen}) => chosen[axis]).find(Boolean))];
    const furtherAxes = [...new Set(benchmarks.flatMap(({own}) => own))].filter(
        (axis) => filterAxis(axis).some(({axes}) => axes[axis].length > 1));
    return Object.fromEntries([
        pickAxis('flags', 'Flags', benchmarks), pickAxis('dtype', 'Dtype of the kernels', ofKernels),
        ...furtherAxes.map((axis) => pickAxis(axis, axis, filterAxis(axis))),
    ]);
}

/* Draw the figures of a benchmark. Bars compare kernels, or dtypes if the axis `along` has at most one measured value. Lines run along
   the values of `along` if it has several. */
function drawFigures(display, {index, picks, copies, peak}, {benchmark, points}) {
    const {along, own: ownAxes} = benchmark;
    const isNear = points.some((point) => computeBandwidth(point) > 0.1 * peak); // otherwise all values would lie near 0 on its axis
    const formatPercent = (value) => value === null || peak === null ? null : (100 * value / peak).toFixed(1);
    const [unit, convert] = benchmark.computes ? ['GFLOP/s', computeGflops] : ['useful GB/s', computeBandwidth];
    const hasFlops = (benchmark.flops ?? []).some(isValue);
    const shown = {
        measure: {
            unit, convert,
            describe: (name, value) => `${name}: ${formatNumber(value)} ${unit.replace('useful ', '')}` +
                (benchmark.computes || peak === null ? '' : `, ${formatPercent(value)} % of peak`),
            axis: benchmark.computes || peak === null || !isNear ? {} : {top: peak, share: '% of theoretical peak'},
        },
        headers: ['µs', 'GB/s', '% of peak', ...hasFlops ? ['GFLOP/s'] : []],
        cells: (point) => [
            (point.value * 1e6).toFixed(1), formatNumber(computeBandwidth(point)), formatPercent(computeBandwidth(point)),
            ...hasFlops ? [formatNumber(computeGflops(point))] : []],
    };
    const lines = (benchmark.lines === null ? [''] : listMeasured(points, benchmark.lines)).map((value) => ({
        name: nameLine(index, benchmark, value || benchmark.kernel), key: value === '' ? {} : {[benchmark.lines]: value},
    }));
    const places = along === null ? [] : listPlaces(points, along);
    const fixPicked = (axes) => fixAxes(benchmark, axes.filter((axis) => axis !== benchmark.lines), picks, points);
    if (hasKernelLines(benchmark) || places.length < 2) {
        drawKernels(display, copies, shown, benchmark, points, lines, fixPicked([...ownAxes, 'dtype']));
    }
    if (places.length > 1) {
        const fixed = fixPicked([...ownAxes, 'dtype', 'flags'].filter((axis) => axis !== along));
        drawPlaces(display, copies, shown, benchmark, points, lines, fixed, places);
    }
}

/* Draw a bar for each kernel, or dtype, and set of flags. The rate of the copy with the same parameters is the bars' ceiling. */
function drawKernels(display, copies, {headers, ...shown}, benchmark, points, lines, fixed) {
    const fixedPoints = filterPoints(points, fixed);
    const places = lines.filter(({key}) => filterPoints(fixedPoints, key).length > 0);
    const ceilings = places.map(({key}) => copies.find(
        ({params}) => Object.entries(params).every(([axis, value]) => ({...fixed, ...key})[axis] === value))
    ).map((copy) => copy === undefined || shown.measure.convert !== computeBandwidth ? null : computeBandwidth(copy)); // a copy has no GFLOP/s
    const hasFlags = 'flags' in benchmark.axes;
    drawSweep(display, drawBars, {
        ...shown, title: joinTitle(benchmark.family, fixed), note: benchmark.note, places, ceilings,
        lines: hasFlags ? listMeasured(fixedPoints, 'flags').map((flags) => ({name: flags, points: filterPoints(fixedPoints, {flags})}))
            : [{name: benchmark.title, points: fixedPoints}],
        headers: [hasKernelLines(benchmark) ? 'kernel' : 'dtype', 'flags', ...headers],
        ceilingName: isValue(ceilings[0]) ? shown.measure.describe(COPY, ceilings[0]) : `${COPY} of the same size`,
    });
}

/* Draw a line for each kernel or dtype, along the values `places` of the axis `along`, and one for the copy. */
function drawPlaces(display, copies, {headers, ...shown}, benchmark, points, lines, fixed, places) {
    const {along} = benchmark;
    const fixedPoints = filterPoints(points, fixed);
    const hasCopy = hasKernelLines(benchmark) && shown.measure.convert === computeBandwidth;
    drawSweep(display, drawLines, {
        ...shown, title: joinTitle(benchmark.family, `by ${along}`, fixed),
        lines: [
            ...lines.map(({name, key}) => ({name, points: filterPoints(fixedPoints, key)})),
            ...hasCopy ? [{name: COPY, points: filterPoints(copies, {dtype: fixed.dtype})}] : [],
        ],
        note: `${benchmark.note} ${benchmark.in_l2 ? 'Rates from the L2 cache may exceed the peak, which is that of DRAM.'
            : 'Every launch finds its data in DRAM. Small sizes move too few bytes to fill the GPU.'}`.trim(),
        places: places.map((place) => ({name: place, key: {[along]: place}})),
        headers: [hasKernelLines(benchmark) ? 'kernel' : 'dtype', along, ...headers],
    });
}

/* Return a text on the conditions of a commit's times: GPU, driver, compiler, theoretical peak, and the meaning of GB/s. */
function describeMachine({gpu, driver, nvcc, peak_bytes_per_second: peak}, gpus) {
    return [
        gpu, gpus.length > 0 && `GPU ${gpus.join(', ')}`, driver && `driver ${driver}`, nvcc,
        peak && `theoretical peak ${formatNumber(peak / 1e9)} GB/s`,
    ].filter(Boolean).join(' · ') + '. GB/s are useful bytes over time: each element counts once in and once out.';
}
