// The page Bandwidth: useful GB/s and their share of the theoretical peak.
'use strict';

(function () {
    const {data, view, charts, choices, rates, byArgument, byKernel, gpus, machines: beside} = window.coalescing;
    const SIZE = 'rows x columns';
    const EVERY = 'every size';

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
        const nothing = {value: '', label: 'nothing'};
        const others = [nothing, ...commits.filter((option) => option.value !== hash)];
        const with_ = chosen.add('with', 'Compared with', others, '', 'times of commit');
        const {commit} = commits.find((option) => option.value === hash);
        const other = others.find((option) => option.value === with_).commit;
        const values = await data.commit(machine, commit);
        const before = other === undefined ? {} : await data.commit(machine, other);

        const all = timed.map((name) => ({
            name,
            benchmark: index.benchmarks[name],
            found: data.points(index, values, name).filter((point) => point.value !== null),
        }));
        const swept = all.filter(
            ({benchmark}) => 'flags' in benchmark.axes && !benchmark.in_l2 && !('copy' in benchmark.axes));
        const cached = all.filter(({benchmark}) => benchmark.in_l2).flatMap(({found}) => found);
        const copy = all.find(({benchmark}) => benchmark.plain_copy);
        const copied = copy === undefined ? [] : copy.found;
        const kernels = swept.filter(({benchmark, found}) => 'kernel' in benchmark.axes && found.length > 0);
        const sized = kernels.filter(({benchmark}) => SIZE in benchmark.axes);

        const preferred = (axis) => [...kernels, ...swept].map(({benchmark}) => benchmark.chosen[axis]).find(Boolean);
        const measured = (some, axis) => data.measured(some.flatMap(({found}) => found), axis);
        const flags = chosen.among('flags', 'Flags', measured(swept, 'flags'), preferred('flags'), 'times with flags');
        const sizes = sized.length === 0 ? [] : [...measured(sized, SIZE), EVERY];
        const size = chosen.among('size', 'Matrix, rows x columns', sizes, preferred(SIZE), 'times of size');
        const dtype = chosen.among(
            'dtype', 'Dtype of the kernels', measured(kernels, 'dtype'), preferred('dtype'), 'times of dtype');
        const axes = {scale: chosen.scale(), spacing: chosen.spacing()};
        const shown = beside.choice(chosen);
        chosen.show();
        if (shown !== beside.ALONE) {
            const fromDram = timed.filter((name) => !index.benchmarks[name].in_l2);
            await beside.bandwidth(
                display, index, choices.machines(index, fromDram), fromDram, shown, {flags, size, dtype});
            return;
        }
        const measuredBy = [commit, other].filter(Boolean).map((one) => gpus.of(index, one, timed));
        view.paragraph(display, facts(commit, gpus.named(measuredBy[0])));
        gpus.notice(display, index, measuredBy);

        const peak = commit.peak_bytes_per_second === null ? null : commit.peak_bytes_per_second / 1e9;
        const context = rates(peak, axes, {
            name: with_ === '' ? null : with_, points: (name) => data.points(index, before, name),
        });
        swept.filter(({benchmark}) => !('kernel' in benchmark.axes)).forEach(({name, benchmark, found}) => byArgument(
            display, context, [name, benchmark], data.where(found, {flags}), flags));
        if (kernels.length === 0) {
            view.paragraph(display, 'Kernels by size were not measured from DRAM. What else was is on the page History.');
        }
        kernels.forEach(function ({name, benchmark, found}) {
            const own = data.measured(found, 'dtype').includes(dtype) ? dtype : benchmark.chosen.dtype;
            const axis = data.sizeAxis(benchmark);
            const place = axis === SIZE ? size : benchmark.chosen[axis];
            const here = {dtype: own, ...(place === EVERY ? {} : {[axis]: place})};
            const family = data.family(benchmark);
            byKernel.bySize(
                display, context, [name, benchmark], data.where(found, here), data.where(copied, here),
                `${family}, ${place}, ${own}`);
            const same = {dtype: own, flags};
            byKernel.overSizes(
                display, context, [name, benchmark, data.where(found, same)],
                [copy && copy.name, data.where(copied, {dtype: own})], data.where(cached, same), commit.l2_bytes,
                `${family}, by size, ${own}, ${flags}`);
        });
    });

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
