// The page Bandwidth: useful GB/s and their share of the theoretical peak.
'use strict';

$(document).ready(function () {
    const {data: lookup, view, svg, lines, bars} = window.coalescing;
    const OFFSET = 'time_copy.OffsetCopy.time_back_to_back';
    const STRIDE = 'time_copy.StrideCopy.time_back_to_back';
    const TRANSPOSE = 'time_transpose.Transpose.time_back_to_back';
    const COPY = 'time_copy.DeviceCopy.time_back_to_back';
    const ALL = [OFFSET, STRIDE, TRANSPOSE, COPY];
    const SIZE = 'rows x columns';

    /* What was chosen, by preference `wanted`, among an axis's measured values. */
    function pick(params, key, values, wanted, display, what) {
        const options = values.map((value) => ({value, label: value}));
        const otherwise = values.includes(wanted) ? wanted : values[0];
        return {key, options, value: view.chosen(params, key, options, otherwise, display, what)};
    }

    function render(data, params, display) {
        const machines = view.machines(data, ALL);
        if (machines.length === 0) {
            display.append(view.element('p', {textContent: 'No machine has times yet: they need a GPU.'}));
            return;
        }
        const machine = view.chosen(params, 'machine', machines, machines[0].value, display, 'times of machine');
        const commits = view.commits(data, machine, ALL);
        const hash = view.chosen(params, 'commit', commits, commits[0].value, display, 'times of commit');
        const find = (wanted) => commits.find((option) => option.value === wanted).commit;
        const commit = find(hash);
        const others = [
            {value: '', label: 'nothing'}, ...commits.filter((option) => option.value !== hash),
        ];
        const other = view.chosen(params, 'with', others, '', display, 'times of commit');
        const before = other === '' ? null : {hash: other, commit: find(other)};
        const earlier = (name) => before === null ? [] : lookup.points(data, before.commit, name);
        const copies = [OFFSET, STRIDE].map((name) => lookup.points(data, commit, name));
        const transposes = lookup.points(data, commit, TRANSPOSE);
        const flags = pick(
            params, 'flags', lookup.measured(copies.flat(), 'flags'), '-Xptxas -O3', display, 'copies with flags');
        const size = pick(
            params, 'size', lookup.measured(transposes, SIZE), '12800x12800', display, 'transposes of size');
        const dtype = pick(
            params, 'dtype', lookup.measured(transposes, 'dtype'), 'float32', display, 'transposes of dtype');

        display.append(view.controls('bandwidth', [
            {key: 'machine', label: 'Machine', options: machines, value: machine},
            {key: 'commit', label: 'Commit', options: commits, value: hash},
            {key: 'with', label: 'Compared with', options: others, value: other},
            {label: 'Flags', ...flags},
            {label: 'Matrix of the transposes, rows x columns', ...size},
            {label: 'Dtype of the transposes', ...dtype},
        ].filter((field) => field.options.length > 0)), view.element('p', {textContent: facts(commit)}));

        const peak = commit.peak_bytes_per_second === null ? null : commit.peak_bytes_per_second / 1e9;
        const than = before === null ? null : before.hash;
        copyFigure(display, copies[0], {name: than, points: earlier(OFFSET)}, 'offset', flags.value, peak,
            'A warp whose bytes do not begin at a sector touches one sector more: float32 takes 5 sectors for 4, so 20 % ' +
            'are lost if no cache keeps the shared one. Caches do: what is lost is less.');
        copyFigure(display, copies[1], {name: than, points: earlier(STRIDE)}, 'stride', flags.value, peak,
            'Whole sectors of 32 bytes are moved whatever is used of them: half is lost at stride 2, until each ' +
            'element takes a sector of its own.');
        transposeFigure(
            display, transposes, {name: than, points: earlier(TRANSPOSE)}, lookup.points(data, commit, COPY),
            {[SIZE]: size.value, dtype: dtype.value}, peak);
        sizeFigure(display, transposes, lookup.points(data, commit, COPY), dtype.value, flags.value, peak);
        view.restoreFocus();
    }

    function facts(commit) {
        const parts = [commit.gpu, commit.driver && `driver ${commit.driver}`, commit.nvcc];
        if (commit.peak_bytes_per_second !== null) {
            parts.push(`theoretical peak ${svg.figure(commit.peak_bytes_per_second / 1e9)} GB/s`);
        }
        return parts.filter(Boolean).join(' · ') +
            '. GB/s are useful bytes over time: each element counts once in and once out.';
    }

    const percent = (rate, peak) => rate === null || peak === null ? null : (100 * rate / peak).toFixed(1);

    function told(name, rate, peak) {
        const share = percent(rate, peak);
        return `${name}: ${svg.figure(rate)} GB/s` + (share === null ? '' : `, ${share} % of peak`);
    }

    const axis = (peak, rates) => ({
        top: peak === null ? svg.roundUp(Math.max(...rates)) : peak,
        ...(peak === null ? {} : {share: {title: '% of theoretical peak'}}),
    });

    /* The rate of the same configuration on the commit that is compared with, or null. */
    function rateBefore(other, point) {
        const found = point === null ? undefined : lookup.where(other.points, point.params)[0];
        return found === undefined ? null : lookup.rate(found);
    }

    /* The last cells of a row where commits are compared: the other's rate, and this one's as a multiple of it. */
    function comparison(other, point) {
        if (other.name === null) {
            return [];
        }
        const rate = rateBefore(other, point);
        return [svg.figure(rate), rate === null ? null : (lookup.rate(point) / rate).toFixed(3)];
    }

    const comparisonHeaders = (other) => other.name === null ? [] : [`${other.name}, GB/s`, 'ratio'];

    function copyFigure(display, points, other, name, flags, peak, note) {
        const found = lookup.where(points, {flags}).filter((point) => point.value !== null);
        if (found.length === 0) {
            return;
        }
        const places = lookup.measured(found, name);
        const rows = [];
        const series = lookup.measured(found, 'dtype').map(function (dtype) {
            const at = places.map((place) => lookup.where(found, {dtype, [name]: place})[0] || null);
            // The prediction scales the rate of the place that costs nothing: offset 0, stride 1.
            const base = at[0] === null ? null : lookup.rate(at[0]) / at[0].share;
            const rates = at.map((point) => point && lookup.rate(point));
            const predicted = at.map((point) => point === null || base === null ? null : base * point.share);
            const dashed = other.name === null ? predicted : at.map((point) => rateBefore(other, point));
            at.forEach(function (point, index) {
                if (point !== null) {
                    rows.push([
                        dtype, places[index], (point.value * 1e6).toFixed(1), svg.figure(rates[index]),
                        percent(rates[index], peak), svg.figure(predicted[index]), ...comparison(other, point),
                    ]);
                }
            });
            const titles = rates.map((rate, index) => told(`${dtype}, ${name} ${places[index]}`, rate, peak));
            return {name: dtype, values: rates, dashed, titles};
        });
        const title = `Copy by ${name}`;
        const headers = [
            'dtype', `${name}, elements`, 'µs', 'GB/s', '% of peak', 'predicted, GB/s', ...comparisonHeaders(other),
        ];
        view.figure(display, title, note, (chart) => lines(chart, {
            label: `${title}: useful GB/s by ${name}, one line a dtype; the table has the values`,
            xTitle: `${name}, elements`,
            yTitle: 'useful GB/s',
            places,
            series,
            dashedName: other.name === null ? 'predicted by 32-byte sectors' : `commit ${other.name}`,
            ...axis(peak, found.map(lookup.rate)),
        }), view.table(`${title}, ${flags}`, headers, rows));
    }

    function transposeFigure(display, points, other, copies, fixed, peak) {
        const found = lookup.where(points, fixed).filter((point) => point.value !== null);
        if (found.length === 0) {
            return;
        }
        const groups = lookup.measured(found, 'kernel');
        const series = lookup.measured(found, 'flags').map(function (flags) {
            const at = groups.map((kernel) => lookup.where(found, {kernel, flags})[0] || null);
            const values = at.map((point) => point && lookup.rate(point));
            const marks = at.map((point) => rateBefore(other, point));
            const titles = values.map((rate, row) => told(`${groups[row]}, ${flags}`, rate, peak));
            return {name: flags, values, marks, titles};
        });
        const rows = found.map(function (point) {
            const rate = lookup.rate(point);
            return [
                point.params.kernel, point.params.flags, (point.value * 1e6).toFixed(1), svg.figure(rate),
                percent(rate, peak), ...comparison(other, point),
            ];
        });
        const copy = lookup.where(copies, fixed).find((point) => point.value !== null);
        const ceiling = copy === undefined ? null : lookup.rate(copy);
        if (ceiling !== null) {
            rows.push([
                'device-to-device copy', null, (copy.value * 1e6).toFixed(1), svg.figure(ceiling), percent(ceiling, peak),
                ...comparisonHeaders(other).map(() => null),
            ]);
        }
        const title = `Transposes of ${fixed[SIZE]}, ${fixed.dtype}`;
        const note = 'The driver\'s device-to-device copy of as many bytes is what a transpose could reach.';
        view.figure(display, title, note, (chart) => bars(chart, {
            label: `${title}: useful GB/s by kernel and flags; the table has the values`,
            xTitle: 'useful GB/s',
            groups,
            series,
            marksName: other.name === null ? undefined : `commit ${other.name}`,
            ...(ceiling === null ? {} : {ceiling: {value: ceiling, name: told('device-to-device copy', ceiling, peak)}}),
            ...axis(peak, found.map(lookup.rate)),
        }), view.table(title, ['kernel', 'flags', 'µs', 'GB/s', '% of peak', ...comparisonHeaders(other)], rows));
    }

    function sizeFigure(display, points, copies, dtype, flags, peak) {
        const found = lookup.where(points, {dtype, flags}).filter((point) => point.value !== null);
        const copied = lookup.where(copies, {dtype}).filter((point) => point.value !== null);
        const elements = (place) => place.split('x').reduce((product, side) => product * Number(side), 1);
        const places = lookup.measured(found, SIZE).sort((one, other) => elements(one) - elements(other));
        if (places.length < 2) {
            return;
        }
        const line = function (name, some) {
            const at = places.map((place) => lookup.where(some, {[SIZE]: place})[0] || null);
            const values = at.map((point) => point && lookup.rate(point));
            return {name, at, values, titles: values.map((rate, index) => told(`${name}, ${places[index]}`, rate, peak))};
        };
        const series = lookup.measured(found, 'kernel').map((kernel) => line(kernel, lookup.where(found, {kernel})));
        if (copied.length > 0) {
            series.push(line('device-to-device copy', copied));
        }
        const rows = series.flatMap((one) => one.at.flatMap((point, index) => point === null ? [] : [[
            one.name, places[index], (point.value * 1e6).toFixed(1), svg.figure(one.values[index]),
            percent(one.values[index], peak),
        ]]));
        const title = `Transposes by size, ${dtype}, ${flags}`;
        const note = 'Every launch finds its data in DRAM: the buffers rotate through three times the L2 cache.';
        view.figure(display, title, note, (chart) => lines(chart, {
            label: `${title}: useful GB/s by matrix, one line a kernel; the table has the values`,
            xTitle: 'rows x columns',
            yTitle: 'useful GB/s',
            places,
            series,
            ...axis(peak, series.flatMap((one) => one.values)),
        }), view.table(title, ['kernel', 'rows x columns', 'µs', 'GB/s', '% of peak'], rows));
    }

    view.register('bandwidth', 'Bandwidth', render);
});
