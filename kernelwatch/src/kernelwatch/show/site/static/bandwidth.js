// The page Bandwidth: useful GB/s and their share of the theoretical peak.
'use strict';

const COPY = 'plain copy';

page(async function (chosen, display) {
    const index = await piece('index');
    const timed = ofKind(index, 'timed').filter((one) => !one.isolated);
    const name = chosen.machine(index, timed);
    if (name === null) {
        paragraph(display, 'No machine has times yet: they need a GPU.');
        return;
    }
    const machine = index.machines[name];
    const commit = chosen.commit(machine, timed);
    const others = othersOf(index, name, commit, timed);
    const with_ = chosen.pick('with', 'Compared with', [{value: '', label: 'nothing'}, ...others]);
    const other = others.find(({value}) => value === with_);
    const values = await valuesAt(machine, commit, timed);
    const before = other && await valuesAt(other.machine, other.commit, timed);
    const all = timed.map((benchmark) => ({benchmark, found: points(benchmark, values).filter(({value}) => value !== null)}));
    const swept = all.filter(({benchmark}) => !benchmark.in_l2 && !benchmark.plain_copy);
    const picks = picked(chosen, swept.map(({benchmark}) => benchmark).filter((one) => commitsWith(machine, [one]).length > 0));
    const scale = chosen.pick('scale', 'Scale of lines', ['linear', LOG]);
    chosen.show();
    const gpus = gpusOf(commit, timed);
    paragraph(display, facts(commit, gpus));
    noticeGpus(display, index, [...gpus, ...other && other.machine === machine ? gpusOf(other.commit, timed) : []]);
    const missing = swept.filter(({found}) => found.length === 0).map(({benchmark}) => benchmark.family);
    if (missing.length > 0) {
        paragraph(display, `Not measured at this commit: ${missing.join('; ')}. What else was is on the page History.`);
    }
    const cached = (wanted) => all.filter(({benchmark}) => benchmark[wanted]).flatMap(({found}) => found);
    const context = {
        index, picks, scale, l2: commit.l2_bytes, cached: cached('in_l2'), copied: cached('plain_copy'),
        peak: commit.peak_bytes_per_second && commit.peak_bytes_per_second / 1e9,
        other: other && {name: other.name, points: (benchmark) => points(benchmark, before)},
    };
    swept.filter(({found}) => found.length > 0).forEach((one) => figures(display, context, one));
});

/* What a commit can be compared with: others of its machine, newest first, and the other machines' newest that have most. */
function othersOf(index, name, commit, timed) {
    const commits = commitsWith(index.machines[name], timed).toReversed().filter((one) => one !== commit);
    const machines = Object.keys(index.machines).filter((other) => other !== name && commitsWith(index.machines[other], timed).length > 0);
    return [
        ...commits.map((one) => ({
            value: short(one), label: `${short(one)}, ${day(one)}`, name: `commit ${short(one)}`, machine: index.machines[name], commit: one})),
        ...machines.map((other) => ({
            value: other, label: index.machines[other].short, name: index.machines[other].short, machine: index.machines[other],
            commit: fullest(commitsWith(index.machines[other], timed), timed)})),
    ];
}

/* The values that figures show: flags, the dtype of kernels, and one of each further axis. The choices are those of a machine:
   whatever commit is looked at, they stay. */
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

/* What a benchmark's charts and tables show of a point, and of what `beside` compares it with. */
function shownOf({peak, scale, other}, benchmark, found) {
    const isNear = found.some((point) => rate(point) > 0.1 * peak); // else all would lie on the axis
    const percent = (value) => value === null || peak === null ? null : (100 * value / peak).toFixed(1);
    const [unit, of] = benchmark.computes ? ['GFLOP/s', gflops] : ['useful GB/s', rate];
    const told = (what, value) => `${what}: ${digits(value)} ${unit.replace('useful ', '')}` +
        (benchmark.computes || peak === null ? '' : `, ${percent(value)} % of peak`);
    const axis = benchmark.computes || peak === null || !isNear ? {scale} : {scale, top: peak, share: '% of theoretical peak'};
    const works = benchmark.flops.some(isValue);
    const past = other ? other.points(benchmark) : [];
    const old = (point) => where(past, point.params)[0] || {value: null};
    const columns = (beside) => ({
        headers: ['µs', 'GB/s', '% of peak', ...works ? ['GFLOP/s'] : [],
            ...beside ? [`${beside.name}, ${unit.replace('useful ', '')}`] : [], ...other ? ['ratio'] : []],
        cells: (point, value) => [
            (point.value * 1e6).toFixed(1), digits(rate(point)), percent(rate(point)), ...works ? [digits(gflops(point))] : [],
            ...beside ? [digits(value)] : [], ...other ? [old(point).value && (old(point).value / point.value).toFixed(3)] : []],
    });
    const before = other && {name: other.name, of: (point) => of({...point, value: old(point).value})};
    return {measure: {unit, of, told, axis}, columns, before};
}

/* Bars by kernel, or by dtype where there is one place; and lines along the places. */
function figures(display, context, {benchmark, found}) {
    const {along, own} = benchmark;
    const shown = shownOf(context, benchmark, found);
    const values = benchmark.lines === null ? [''] : measured(found, benchmark.lines);
    const every = values.map((value) => ({
        name: label(context.index, benchmark, value || benchmark.kernel), key: value === '' ? {} : {[benchmark.lines]: value},
    }));
    const places = along === null ? [] : placesOf(found, along);
    const at = (axes) => fixedAt(benchmark, axes.filter((axis) => axis !== benchmark.lines), context.picks, found);
    if (ofKernels(benchmark) || places.length < 2) {
        overKernels(display, context, shown, benchmark, found, every, at([...own, 'dtype']));
    }
    if (places.length > 1) {
        overPlaces(display, context, shown, benchmark, found, every, at([...own, 'dtype', 'flags'].filter((axis) => axis !== along)));
    }
}

/* Bars of the kernels, one a flag set, with the copy of as many bytes as the ceiling. */
function overKernels(display, {copied}, {measure, columns, before}, benchmark, found, every, fixed) {
    const here = where(found, fixed);
    const places = every.filter(({key}) => where(here, key).length > 0);
    const copies = places.map(({key}) => copied.find(
        ({params}) => Object.entries(params).every(([axis, value]) => ({...fixed, ...key})[axis] === value)));
    const ceilings = copies.map((copy) => copy === undefined || measure.of !== rate ? null : rate(copy)); // it computes nothing
    const flags = 'flags' in benchmark.axes ? measured(here, 'flags') : [benchmark.title];
    const shown = columns(before);
    sweep(display, bars, {
        title: titled(benchmark.family, fixed), note: benchmark.note, measure, places, ceilings, cells: shown.cells,
        lines: flags.map((name) => ({
            name, points: 'flags' in benchmark.axes ? where(here, {flags: name}) : here, beside: before && before.of})),
        headers: [ofKernels(benchmark) ? 'kernel' : 'dtype', 'flags', ...shown.headers],
        besideName: before && before.name,
        ceilingName: isValue(ceilings[0]) ? measure.told(COPY, ceilings[0]) : `${COPY} of the same size`,
    });
}

/* Lines along the places, one a kernel or a dtype, and one for the copy; dashed the commit that is compared with, or else the
   same from the L2 cache. */
function overPlaces(display, {copied, cached, l2}, {measure, columns, before}, benchmark, found, every, fixed) {
    const {along} = benchmark;
    const here = where(found, fixed);
    const places = placesOf(found, along);
    const inCache = (point) => where(cached, point.params)[0];
    const beside = before || (here.some(inCache)
        ? {name: 'from the L2 cache', of: (point) => inCache(point) === undefined ? null : measure.of(inCache(point))} : undefined);
    const drawn = every.map(({name, key}) => ({name, points: where(here, key), beside: beside && beside.of}));
    if (ofKernels(benchmark) && measure.of === rate) {
        drawn.push({name: COPY, points: where(copied, {dtype: fixed.dtype})});
    }
    const bytesAt = (place) => where(here, {[along]: place})[0]?.usefulBytes ?? 0;
    const grows = bytesAt(places[0]) !== bytesAt(places.at(-1)); // along a stride, every launch moves as many
    const outside = l2 === null || !grows ? -1 : places.findIndex((place) => bytesAt(place) > l2);
    const shown = columns(beside);
    sweep(display, lines, {
        title: titled(benchmark.family, `by ${along}`, fixed), measure, lines: drawn, cells: shown.cells,
        note: grows ? `${benchmark.note} ${ofCache(l2, outside > 0)}`.trim() : benchmark.note,
        places: places.map((place) => ({name: place, key: {[along]: place}})),
        headers: [ofKernels(benchmark) ? 'kernel' : 'dtype', along, ...shown.headers],
        besideName: beside && beside.name,
        boundary: outside > 0 ? {before: outside, name: `L2: ${l2 / 2 ** 20} MiB`} : undefined,
    });
}

function ofCache(l2, isMarked) {
    return 'Every launch finds its data in DRAM: the buffers rotate through three times the L2 cache.' + (l2 === null
        ? ' How much that cache holds was not stored with the run that measured this commit, so it is not marked.'
        : isMarked ? ' Left of the mark, all that a launch moves would fit into that cache.' : '') +
        ' Small sizes move too few bytes to fill the GPU. Rates from the L2 cache may exceed the peak, which is that of DRAM.';
}

function facts({gpu, driver, nvcc, peak_bytes_per_second: peak}, gpus) {
    return [
        gpu, gpus.length > 0 && `GPU ${gpus.join(', ')}`, driver && `driver ${driver}`, nvcc,
        peak && `theoretical peak ${digits(peak / 1e9)} GB/s`,
    ].filter(Boolean).join(' · ') + '. GB/s are useful bytes over time: each element counts once in and once out.';
}
