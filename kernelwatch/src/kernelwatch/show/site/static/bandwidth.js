// The page Bandwidth: useful GB/s and their share of the theoretical peak.
'use strict';

(function () {
    const {data, view, charts, choices, sweep, gpus, machines: beside} = window.coalescing;
    const EVERY = 'every';
    const COPY = 'plain copy';

    view.page(async function (params, display) {
        const index = await data.index();
        const timed = data.ofKind(index, 'timed').filter((name) => !index.benchmarks[name].isolated);
        const machines = choices.machines(index, timed);
        if (machines.length === 0) {
            view.paragraph(display, 'No machine has times yet: they need a GPU.');
            return;
        }
        const chosen = choices(params, display);
        const machine = chosen.machine(index, machines, 'times of machine');
        const commits = choices.commits(index, machine, timed);
        const hash = chosen.add('commit', 'Commit', commits, choices.newest(display, commits, index, timed), 'times of commit');
        const others = [{value: '', label: 'nothing'}, ...commits.filter((option) => option.value !== hash)];
        const with_ = chosen.add('with', 'Compared with', others, '', 'times of commit');
        const {commit} = commits.find((option) => option.value === hash);
        const other = others.find((option) => option.value === with_).commit;
        const values = await data.commit(index, machine, commit, timed);
        const before = other === undefined ? {} : await data.commit(index, machine, other, timed);

        const all = timed.map((name) => ({
            name,
            benchmark: index.benchmarks[name],
            found: data.points(index, values, name).filter((point) => point.value !== null),
        }));
        const swept = all.filter(({benchmark}) => !benchmark.in_l2 && !benchmark.plain_copy);
        const ever = swept.filter(({name}) => machine.commits.some((one) => data.has(index, one, [name])));
        const picks = picked(chosen, ever.map(({benchmark}) => benchmark));
        const axes = {scale: chosen.scale(), spacing: chosen.spacing()};
        const shown = beside.choice(chosen);
        chosen.show();
        if (shown !== beside.ALONE) {
            const fromDram = timed.filter((name) => !index.benchmarks[name].in_l2);
            await beside.bandwidth(display, index, choices.machines(index, fromDram), fromDram, shown, picks);
            return;
        }
        const measuredBy = [commit, other].filter(Boolean).map((one) => gpus.of(index, one, timed));
        view.paragraph(display, facts(commit, gpus.named(measuredBy[0])));
        gpus.notice(display, index, measuredBy);
        const missing = swept.filter(({found}) => found.length === 0).map(({benchmark}) => data.family(benchmark));
        if (missing.length > 0) {
            view.paragraph(display, `Not measured at this commit: ${missing.join('; ')}. What else was is on the page History.`);
        }
        const context = {
            index, picks, axes, l2: commit.l2_bytes,
            peak: commit.peak_bytes_per_second === null ? null : commit.peak_bytes_per_second / 1e9,
            cached: all.filter(({benchmark}) => benchmark.in_l2).flatMap(({found}) => found),
            copied: all.filter(({benchmark}) => benchmark.plain_copy).flatMap(({found}) => found),
            other: with_ === '' ? null : {name: `commit ${with_}`, points: (name) => data.points(index, before, name)},
        };
        swept.filter(({found}) => found.length > 0).forEach((one) => figures(display, context, one));
    });

    /* The values that figures show: flags, the dtype of kernels, and of each further axis one or, of kernels, every one. The
       choices are those of a machine: whatever commit is looked at, they stay. */
    function picked(chosen, swept) {
        const kernels = swept.filter(data.ofKernels);
        const own = (benchmark) => data.ownAxes(benchmark).filter((axis) => data.ofKernels(benchmark) || axis !== benchmark.along);
        const values = (some, axis) => [...new Set(some.flatMap((benchmark) => benchmark.axes[axis] || []))];
        const among = (some, axis, label, more = []) => [axis, chosen.among(
            `p-${axis}`, label, [...values(some, axis), ...more],
            [...kernels, ...swept].map((benchmark) => benchmark.chosen[axis]).find(Boolean), `times of ${axis}`)];
        const having = (axis) => swept.filter((benchmark) => own(benchmark).includes(axis));
        const further = [...new Set(swept.flatMap(own))].filter((axis) => having(axis).some(({axes}) => axes[axis].length > 1));
        return Object.fromEntries([
            among(swept, 'flags', 'Flags'), among(kernels, 'dtype', 'Dtype of the kernels'),
            ...further.map((axis) => among(having(axis), axis, axis, [EVERY])),
        ]);
    }

    /* What a benchmark's charts and tables show of a point, and of what `beside` compares it with. */
    function shownOf({peak, axes: {scale}, other}, name, benchmark, found) {
        const isNear = found.some((point) => data.rate(point) > 0.1 * peak); // else all would lie on the axis
        const percent = (rate) => rate === null || peak === null ? null : (100 * rate / peak).toFixed(1);
        const told = (what, rate) => `${what}: ${charts.digits(rate)} GB/s` + (percent(rate) === null ? '' : `, ${percent(rate)} % of peak`);
        const measure = data.computes(benchmark) ? {
            unit: 'GFLOP/s', of: data.gflops, told: (what, rate) => `${what}: ${charts.digits(rate)} GFLOP/s`, axis: {scale},
        } : {
            unit: 'useful GB/s', of: data.rate, told,
            axis: {scale, ...(peak === null || !isNear ? {} : {top: peak, share: '% of theoretical peak'})},
        };
        const works = (benchmark.flops || []).some((flops) => flops !== null);
        const cells = (point) => [
            (point.value * 1e6).toFixed(1), charts.digits(data.rate(point)), percent(data.rate(point)),
            ...(works ? [charts.digits(data.gflops(point))] : []),
        ];
        const old = (point) => data.where(other.points(name), point.params)[0] || {value: null};
        const ratio = (point) => old(point).value === null ? null : (old(point).value / point.value).toFixed(3);
        const columns = (beside) => ({
            headers: ['µs', 'GB/s', '% of peak', ...(works ? ['GFLOP/s'] : []),
                ...(beside === null ? [] : [`${beside.name}, ${measure.unit.replace('useful ', '')}`]), ...(other === null ? [] : ['ratio'])],
            cells: (point, value) => [
                ...cells(point), ...(beside === null ? [] : [charts.digits(value)]), ...(other === null ? [] : [ratio(point)])],
        });
        const before = other === null ? null : {name: other.name, of: (point) => old(point).value === null
            ? null : measure.of({...point, value: old(point).value})};
        return {measure, told, columns, cells, before};
    }

    /* Bars by kernel, or by dtype where there is one place; and lines along the places. */
    function figures(display, context, {name, benchmark, found}) {
        const {lines, along} = benchmark;
        const of = shownOf(context, name, benchmark, found);
        const values = lines === null ? [''] : data.measured(found, lines);
        const every = values.map((value) => ({
            name: data.label(context.index, benchmark, value || benchmark.kernel), key: value === '' ? {} : {[lines]: value},
        }));
        const places = along === null ? [] : data.places(found, along);
        if (data.ofKernels(benchmark) || places.length < 2) {
            bars(display, context, of, benchmark, found, every);
        }
        if (places.length > 1) {
            overPlaces(display, context, of, benchmark, found, every, places);
        }
    }

    /* Bars of the kernels, one a flag set, with the copy of as many bytes as the ceiling. */
    function bars(display, {picks, copied}, {measure, told, columns, cells, before}, benchmark, found, every) {
        const own = data.ownAxes(benchmark);
        const all = own.filter((axis) => picks[axis] === EVERY);
        const fixed = data.fixed(benchmark, [...own, 'dtype'].filter((axis) => !all.includes(axis) && axis !== benchmark.lines), picks, found);
        const here = data.where(found, fixed);
        const keys = data.combinations(Object.fromEntries(all.map((axis) => [axis, data.places(here, axis)])));
        const places = keys.flatMap((more) => every.map(({name, key}) => ({
            name: [name, ...Object.values(more)].join(', '), key: {...key, ...more},
        })).filter(({key}) => data.where(here, key).length > 0));
        const copies = places.map(({key}) => copied.find(
            ({params}) => Object.entries(params).every(([axis, value]) => ({...fixed, ...key})[axis] === value)));
        const ceilings = copies.map((copy) => copy === undefined || measure.of !== data.rate ? null : data.rate(copy)); // it computes nothing
        const shown = columns(before);
        const moreRows = [...new Set(copies)].filter((copy) => copy !== undefined).map(({params, ...copy}) => {
            const row = [[COPY, ...all.map((axis) => params[axis])].join(', '), null, ...cells(copy)];
            return [...row, ...Array(2 + shown.headers.length - row.length).fill(null)];
        });
        const flags = 'flags' in benchmark.axes ? data.measured(here, 'flags') : [benchmark.title];
        sweep(display, 'bars', {
            title: data.title(data.family(benchmark), ...all.map((axis) => `${EVERY} ${axis}`), fixed),
            note: benchmark.note, measure, places, ceilings, moreRows, cells: shown.cells,
            lines: flags.map((name) => ({
                name, points: 'flags' in benchmark.axes ? data.where(here, {flags: name}) : here, beside: before && before.of})),
            headers: [data.ofKernels(benchmark) ? 'kernel' : 'dtype', 'flags', ...shown.headers],
            besideName: before && before.name,
            ceilingName: keys.length === 1 && ceilings[0] !== null ? told(COPY, ceilings[0]) : `${COPY} of the same size, GB/s`,
        });
    }

    /* Lines along the places, one a kernel or a dtype, and one for the copy; dashed the commit that is compared with, or else what
       32-byte sectors leave, or the same from the L2 cache. */
    function overPlaces(display, {picks, axes, copied, cached, l2}, {measure, columns, before}, benchmark, found, every, places) {
        const {lines, along} = benchmark;
        const fixed = data.fixed(benchmark, [...data.ownAxes(benchmark), 'dtype', 'flags'].filter(
            (axis) => axis !== along && axis !== lines), picks, found);
        const here = data.where(found, fixed);
        const inCache = (point) => data.where(cached, point.params)[0];
        // The prediction scales the rate of the first place, which costs least.
        const predicted = function (point) {
            const [first] = data.where(here, {...point.params, [along]: places[0]});
            return first === undefined ? null : data.rate(first) / first.share * point.share;
        };
        const predicts = here.some(({share}) => share !== null);
        const beside = before || (predicts ? {name: 'predicted by 32-byte sectors', of: predicted} : here.some(inCache)
            ? {name: 'from the L2 cache', of: (point) => inCache(point) === undefined ? null : measure.of(inCache(point))} : null);
        const drawn = every.map(({name, key}) => ({name, points: data.where(here, key), beside: beside && beside.of}));
        if (data.ofKernels(benchmark) && measure.of === data.rate) {
            drawn.push({name: COPY, points: data.where(copied, {dtype: fixed.dtype})});
        }
        const bytes = (place) => (data.where(here, {[along]: place})[0] || {usefulBytes: 0}).usefulBytes;
        const outside = l2 === null || predicts ? -1 : places.findIndex((place) => bytes(place) > l2);
        const numbers = places.map(data.elements);
        const shown = columns(beside);
        sweep(display, 'lines', {
            title: data.title(data.family(benchmark), `by ${along}`, fixed),
            note: predicts ? benchmark.note : `${benchmark.note} ${told(l2, outside > 0)}`.trim(), measure, lines: drawn, cells: shown.cells,
            places: places.map((place) => ({name: place, key: {[along]: place}})),
            headers: [data.ofKernels(benchmark) ? 'kernel' : 'dtype', along, ...shown.headers],
            besideName: beside && beside.name,
            boundary: outside > 0 ? {before: outside, name: `L2: ${l2 / 2 ** 20} MiB`} : undefined,
            ...(axes.spacing === charts.LOG && numbers.every((one) => one > 0) ? {positions: numbers} : {}),
        });
    }

    function told(l2, isMarked) {
        return 'Every launch finds its data in DRAM: the buffers rotate through three times the L2 cache.' + (l2 === null
            ? ' How much that cache holds was not stored with the run that measured this commit, so it is not marked.'
            : isMarked ? ' Left of the mark, all that a launch moves would fit into that cache.' : '') +
            ' Small sizes move too few bytes to fill the GPU. Rates from the L2 cache may exceed the peak, which is that of DRAM.';
    }

    function facts(commit, measuredBy) {
        const parts = [
            commit.gpu, measuredBy && `GPU ${measuredBy}`, commit.driver && `driver ${commit.driver}`, commit.nvcc,
        ];
        if (commit.peak_bytes_per_second !== null) {
            parts.push(`theoretical peak ${charts.digits(commit.peak_bytes_per_second / 1e9)} GB/s`);
        }
        return parts.filter(Boolean).join(' · ') +
            '. GB/s are useful bytes over time: each element counts once in and once out.';
    }
})();
