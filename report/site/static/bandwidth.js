// The page Bandwidth: useful GB/s and their share of the theoretical peak.
'use strict';

$(document).ready(function () {
    const {data, view, svg, choices, rates, copies, transposes, gpus} = window.coalescing;
    const CLASSES = [
        'time_copy.OffsetCopy', 'time_copy.StrideCopy', 'time_transpose.Transpose', 'time_transpose.TransposeInL2',
        'time_copy.DeviceCopy',
    ];
    const SIZE = 'rows x columns';
    const EVERY = 'every size';

    async function render(index, params, display) {
        const all = CLASSES.map((name) => data.timed(index, name));
        const [offset, stride, transpose, , copy] = all;
        const machines = choices.machines(index, all);
        if (machines.length === 0) {
            view.paragraph(display, 'No machine has times yet: they need a GPU.');
            return;
        }
        const chosen = choices('bandwidth', params, display);
        const machine = chosen.machine(index, machines, 'times of machine');
        const commits = choices.commits(index, machine, all);
        const hash = chosen.add('commit', 'Commit', commits, commits[0].value, 'times of commit');
        const nothing = {value: '', label: 'nothing'};
        const others = [nothing, ...commits.filter((option) => option.value !== hash)];
        const with_ = chosen.add('with', 'Compared with', others, '', 'times of commit');
        const {commit} = commits.find((option) => option.value === hash);
        const other = others.find((option) => option.value === with_).commit;
        const values = await data.commit(machine, commit);
        const before = other === undefined ? {} : await data.commit(machine, other);

        const [offsets, strides, timed, cached, copied] = all.map(
            (name) => data.points(index, values, name).filter((point) => point.value !== null));
        const flags = chosen.among(
            'flags', 'Flags', data.measured([...offsets, ...timed], 'flags'), '-Xptxas -O3', 'times with flags');
        const size = chosen.among(
            'size', 'Matrix of the transposes, rows x columns',
            timed.length === 0 ? [] : [...data.measured(timed, SIZE), EVERY], '12800x12800', 'transposes of size');
        const dtype = chosen.among(
            'dtype', 'Dtype of the transposes', data.measured(timed, 'dtype'), 'float32', 'transposes of dtype');
        chosen.show();
        const measuredBy = [commit, other].filter(Boolean).map((one) => gpus.of(index, one, all));
        view.paragraph(display, facts(commit, gpus.named(measuredBy[0])));
        gpus.notice(display, index, measuredBy);

        const peak = commit.peak_bytes_per_second === null ? null : commit.peak_bytes_per_second / 1e9;
        const context = rates(peak, {
            name: with_ === '' ? null : with_, points: (name) => data.points(index, before, name),
        });
        copies(display, context, offset, data.where(offsets, {flags}), 'offset', flags,
            'A warp whose bytes do not begin at a sector touches one sector more: float32 takes 5 sectors for 4, so 20 % ' +
            'are lost if no cache keeps the shared one. Caches do: what is lost is less.');
        copies(display, context, stride, data.where(strides, {flags}), 'stride', flags,
            'Whole sectors of 32 bytes are moved whatever is used of them: half is lost at stride 2, until each ' +
            'element takes a sector of its own.');
        if (timed.length === 0) {
            view.paragraph(display, 'Transposes from DRAM were not measured. What else was is on the page History.');
            return;
        }
        const here = {dtype, ...(size === EVERY ? {} : {[SIZE]: size})};
        const same = {dtype, flags};
        transposes.bySize(
            display, context, transpose, data.where(timed, here), data.where(copied, here),
            `Transposes of ${size}, ${dtype}`);
        transposes.overSizes(
            display, context, [transpose, data.where(timed, same)], [copy, data.where(copied, {dtype})],
            data.where(cached, same), commit.l2_bytes, `Transposes by size, ${dtype}, ${flags}`);
    }

    function facts(commit, measuredBy) {
        const parts = [
            commit.gpu, measuredBy && `GPU ${measuredBy}`, commit.driver && `driver ${commit.driver}`, commit.nvcc,
        ];
        if (commit.peak_bytes_per_second !== null) {
            parts.push(`theoretical peak ${svg.figure(commit.peak_bytes_per_second / 1e9)} GB/s`);
        }
        return parts.filter(Boolean).join(' · ') +
            '. GB/s are useful bytes over time: each element counts once in and once out.';
    }

    view.register('bandwidth', 'Bandwidth', render);
});
