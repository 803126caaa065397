// The page Noise: how far times differ on a machine when nothing has changed, its A/A result.
'use strict';

(function (coalescing) {
    const {data, view, charts, choices} = coalescing;
    const ALL = 'all';
    const MADE_BY = 'kernelwatch selftest';
    const SPREADS = {
        between: 'between processes, relative standard deviation',
        within: 'within a process, relative standard deviation',
        threshold: 'threshold: smallest change that is told of',
    };
    /* Shares of the configurations that the summary shows. */
    const QUANTILES = [['median', 0.5], ['90th percentile', 0.9], ['largest', 1]];

    async function render(index, chosen, display) {
        const every = Object.keys(index.machines);
        const names = [...every].sort((one, other) => (index.machines[other].noise > 0) - (index.machines[one].noise > 0));
        if (names.length === 0) {
            view.paragraph(display, 'No machine has results yet: kernelwatch run');
            return;
        }
        const machine = chosen.machine(index, names, 'noise of machine');
        const {selftest, entries, too_noisy: tooNoisy, checks} = await data.noise(machine);
        const benchmark = (entry) => entry.configuration.replace(/\(.*$/, '');
        const benchmarks = [...new Set(entries.map(benchmark))].sort();
        const only = entries.length === 0 ? ALL : chosen.among('benchmark', 'Benchmark', [ALL, ...benchmarks], ALL, 'noise of');
        chosen.show();
        if (checks.length > 0) {
            checked(display, checks);
        }
        if (entries.length === 0) {
            view.notice(display, `${machine.name} has no A/A result. On a machine with a GPU it is made by: ${MADE_BY}`);
            return;
        }
        const brief = {commit: 8, date: 10, uuid: 12}; // characters: enough to tell one from another
        const facts = Object.entries(selftest).map(([name, value]) => `${name} ${String(value).slice(0, brief[name])}`);
        view.paragraph(display, [...facts, `${entries.length} configurations`].join(' · '));
        view.paragraph(display, 'The same code measured by several processes: whatever differs is noise. A change of a time ' +
            'counts only if it is larger than the threshold of its configuration. Where that is ' +
            `${percent(tooNoisy)} % or more, the machine is too noisy to tell.`);
        summary(display, tooNoisy, benchmarks.map((name) => [name, entries.filter((entry) => benchmark(entry) === name)]));
        details(display, only, entries.filter((entry) => only === ALL || benchmark(entry) === only));
    }

    /* Numbers that could be reused and were measured all the same: equal machine code under equal conditions. */
    function checked(display, checks) {
        const title = 'Measured again although nothing had changed';
        const off = ({ratio}) => ratio === null ? Infinity : Math.abs(ratio - 1);
        const rows = [...checks].reverse().map(({commit, started, checked: all}) => {
            const differing = all.filter((one) => off(one) > one.threshold);
            const largest = [...all].sort((one, other) => off(other) - off(one))[0];
            return [commit.slice(0, 8), started.slice(0, 10), all.length, differing.length, percent(off(largest)),
                largest.configuration];
        });
        display.append(view.element('h2', {textContent: title}));
        view.paragraph(display, 'A share of what could be taken from an earlier commit is measured all the same. Where one ' +
            'of them differs by more than its threshold, everything is measured.');
        display.append(view.table(title, ['commit', 'date', 'measured again', 'differing', 'largest difference, %', 'of'], rows));
    }

    const percent = (share) => share === null ? null : String(+(100 * share).toPrecision(3));

    function summary(display, tooNoisy, groups) {
        const title = 'By benchmark';
        const kept = ['between', 'threshold'];
        const headers = ['benchmark', 'configurations', ...kept.flatMap(
            (name) => QUANTILES.map(([what]) => `${name === 'threshold' ? name : name + ' processes'}, ${what}, %`)),
        'too noisy'];
        const rows = groups.map(([name, entries]) => [
            name, entries.length, ...kept.flatMap((key) => QUANTILES.map(([, part]) => percent(quantile(entries, key, part)))),
            entries.filter((entry) => entry.threshold >= tooNoisy).length,
        ]);
        display.append(view.element('h2', {textContent: title}), view.table(title, headers, rows));
    }

    function quantile(entries, key, part) {
        const values = entries.map((entry) => entry[key]).filter((value) => value !== null).sort((one, other) => one - other);
        return values.length === 0 ? null : values[Math.ceil(part * values.length) - 1];
    }

    function details(display, only, entries) {
        const title = only === ALL ? 'Every configuration' : only;
        const series = Object.entries(SPREADS).map(([key, name]) => ({
            name,
            points: entries.filter((entry) => entry.seconds > 0 && entry[key] !== null).map((entry) => ({
                x: entry.seconds * 1e6,
                y: 100 * entry[key],
                title: `${entry.configuration}: ${percent(entry[key])} % ${name}`,
            })),
        }));
        const headers = ['configuration', 'µs', 'between, %', 'within, %', 'threshold, %', 'processes'];
        const rows = [...entries].sort((one, other) => other.threshold - one.threshold).map((entry) => [
            entry.verified ? entry.configuration : `${entry.configuration}, not verified`, entry.seconds === null ? null : (entry.seconds * 1e6).toFixed(2),
            ...Object.keys(SPREADS).map((key) => percent(entry[key])), entry.processes,
        ]);
        const note = 'Both axes are logarithmic.';
        view.figure(display, title, note, (chart) => charts.scatter(chart, {
            label: `${title}: spread in % by time, three marks a configuration; the table has the values`,
            xTitle: 'median time, µs',
            yTitle: '% of the time',
            series,
        }), view.table(`${title}, largest threshold first`, headers, rows));
    }

    coalescing.noise = render;
})(window.coalescing);
