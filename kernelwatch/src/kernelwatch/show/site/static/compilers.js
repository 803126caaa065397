// The page Compilers: what each watched compiler made of the kernels, at one commit.
'use strict';

(function (coalescing) {
    const {data, view, choices} = coalescing;
    const EVERY = 'every';
    const BEFORE = 'the release before';
    const METRICS = [['registers', 'registers'], ['spill_bytes', 'B spilled'], ['shared_bytes', 'B shared']];
    const MADE_BY = 'kernelwatch compilers';

    async function render(index, chosen, display) {
        const count = (name) => index.machines[name].compilers;
        const names = Object.keys(index.machines).filter(count).sort((one, other) => count(other) - count(one));
        if (names.length === 0) {
            view.notice(display, `No machine has results of one commit by two compilers. To compile with all: ${MADE_BY}`);
            return;
        }
        const machine = chosen.machine(index, names, 'compilers of machine');
        const known = await data.compilers(machine);
        const releases = known.compilers.map(({name}) => name);
        const timed = await Promise.all(names.map(async (name) => ({name, known: await data.compilers(index.machines[name])})));
        if (known.configurations.length === 0) { // a run of times alone
            chosen.show();
            times(index, display, timed);
            return;
        }
        const {chosen: preferred} = index.benchmarks[data.ofKind(index, 'compiled')[0]] || {chosen: {}};
        const values = (axis) => [...new Set(known.configurations.map((one) => one[axis]))];
        const arch = chosen.among('arch', 'Architecture', values('arch'), preferred.arch, 'architecture');
        const flags = chosen.among('flags', 'Flags', [EVERY, ...values('flags')], EVERY, 'flags');
        const base = chosen.among('with', 'Compare with', [BEFORE, ...releases], BEFORE, 'compiler');
        const kernel = chosen.among('kernel', 'Kernel', values('kernel'), '', 'kernel');
        const dtype = chosen.among('dtype', 'Element type', values('dtype'), preferred.dtype, 'element type');
        chosen.show();
        view.paragraph(display, `Commit ${known.commit.slice(0, 8)}, compiled by nvcc of ${releases.length} releases of CUDA: ` +
            known.compilers.map(({name, nvcc}) => `${name} (${nvcc})`).join(', ') + '. Machine code is the same if its ' +
            'instructions and constants are, byte by byte. Numbers of registers, spilled bytes and instructions: fewer are better, other ' +
            'things being equal.');

        const of = known.configurations.filter((one) => one.arch === arch && (flags === EVERY || one.flags === flags));
        const against = (place) => base === BEFORE ? place - 1 : releases.indexOf(base);
        kernels(display, known, of, releases, against, `${arch}, ${flags === EVERY ? 'all flags' : flags}, compared with ${base}`);
        times(index, display, timed);
        one(display, known, of.filter((each) => each.kernel === kernel), releases, `${kernel}, ${arch}`);
        classes(display, known, of.filter((each) => each.kernel === kernel && each.dtype === dtype), releases, arch);
    }

    /* A row a kernel, a column a release: the same machine code, or what changed. */
    function kernels(display, known, configurations, releases, against, what) {
        const names = [...new Set(configurations.map((one) => one.kernel))];
        const rows = names.map(function (name) {
            const own = configurations.filter((one) => one.kernel === name);
            return [name, ...releases.map((_, place) => change(known, own, against(place), place))];
        });
        const title = `Machine code by kernel and release: ${what}`;
        display.append(view.element('h2', {textContent: title}));
        view.paragraph(display, 'A cell says how many of the configurations (element types, flags) have other machine code, and by how ' +
            'much registers, spilled bytes and instructions moved: the smallest and the largest change of one of them.');
        display.append(tall(view.table(title, ['kernel', ...releases], rows)));
    }

    function change(known, configurations, from, to) {
        if (from < 0 || from === to) {
            return null;
        }
        const both = configurations.filter(({code}) => code[from] !== null && code[to] !== null);
        const other = both.filter(({code}) => code[from] !== code[to]);
        if (both.length === 0 || other.length === 0) {
            return both.length === 0 ? null : 'same';
        }
        const moved = (name, pairs) => {
            const steps = pairs.filter((pair) => pair.every((value) => value !== null)).map(([before, after]) => after - before);
            const [least, most] = [Math.min(...steps), Math.max(...steps)];
            return steps.every((step) => step === 0) ? [] : [`${name} ${least === most ? signed(most) : `${signed(least)} to ${signed(most)}`}`];
        };
        const total = (place) => known.instructions[place] === null ? null : sum(known.instructions[place]);
        return [
            `${other.length} of ${both.length}`,
            ...moved('registers', other.map(({registers}) => [registers[from], registers[to]])),
            ...moved('B spilled', other.map(({spill_bytes: bytes}) => [bytes[from], bytes[to]])),
            ...moved('instructions', other.map(({code}) => [total(code[from]), total(code[to])])),
        ].join('; ');
    }

    const sum = (counts) => Object.values(counts).reduce((total, count) => total + count, 0);
    const signed = (step) => step > 0 ? `+${step}` : `${step}`;

    /* Mean times of kernels as multiples of the default's, of each machine whose GPU took some. */
    function times(index, display, timed) {
        const found = timed.filter(({known}) => Object.keys(known.times).length > 0);
        display.append(view.element('h2', {textContent: 'Times by release'}));
        view.paragraph(display, found.length === 0 ? 'No GPU has timed one commit by two compilers.' :
            'Geometric mean over the sizes and element types that both timed.');
        found.forEach(function ({name, known}) {
            const rows = Object.entries(known.times).map(([kernel, ratios]) => [
                data.label(index, {lines: null, kernel: kernel.split(' ')[0]}, kernel), ...ratios.map((ratio) => ratio === null ? null : ratio.toFixed(3))]);
            const title = `Times on ${name} at ${known.commit.slice(0, 8)}, as multiples of those of ${known.base}`;
            display.append(view.table(title, ['kernel and flags', ...known.compilers.map((each) => each.name)], rows));
        });
    }

    /* Every configuration of a kernel: its registers, and what else differs between releases. */
    function one(display, known, configurations, releases, what) {
        const differs = (each, metric) => new Set(each[metric].filter((value) => value !== null)).size > 1;
        const cell = (each, place) => each.registers[place] === null ? null : METRICS.filter(
            ([metric], at) => at === 0 || differs(each, metric)).map(([metric, unit]) => `${each[metric][place]} ${unit}`).join(', ');
        const rows = configurations.map((each) => [each.dtype, each.flags, ...releases.map((_, place) => cell(each, place))]);
        const title = `Resources by release: ${what}`;
        display.append(view.element('h2', {textContent: title}), view.table(title, ['element type', 'flags', ...releases], rows));
    }

    /* The instructions of a kernel and an element type, by class. */
    function classes(display, known, configurations, releases, arch) {
        configurations.forEach(function (each) {
            const counts = each.code.map((code) => code === null ? null : known.instructions[code]);
            const names = [...new Set(counts.flatMap((found) => Object.keys(found || {})))].sort();
            const rows = names.map((name) => [name, ...counts.map((found) => found && (found[name] || 0))]);
            const title = `Instructions by class: ${each.kernel}, ${each.dtype}, ${each.flags}, ${arch}`;
            display.append(view.element('h2', {textContent: title}));
            if (names.length === 0) {
                view.paragraph(display, 'No run disassembled this machine code.');
                return;
            }
            display.append(view.table(
                `${title}. Loads and stores by memory and bits.`, ['class', ...releases],
                [...rows, ['all', ...counts.map((found) => found && sum(found))]]));
        });
    }

    function tall(table) {
        table.classList.add('tall');
        return table;
    }

    coalescing.compilers = render;
})(window.coalescing);
