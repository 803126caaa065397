// The page Regressions: what became slower or more, a row a kernel, machine, flags and commit.
'use strict';

$(document).ready(function () {
    const {view, choices, changes} = window.coalescing;
    const {element} = view;

    const EVERY = {machine: 'every machine', kernel: 'every kernel'};

    /* What is shown: a name, and whether a group belongs. */
    const SHOWN = {
        'slower, or more': (group) => (group.slower > 0 || group.faster === 0 && group.more > 0) && !group.elsewhere,
        'slower': (group) => group.slower > 0,
        'faster, or fewer': (group) => (group.faster > 0 || group.slower === 0 && group.fewer > 0) && !group.elsewhere,
        'acknowledged': (group) => group.acknowledged > 0,
        'every change': () => true,
    };

    const ORDERS = {
        'worst first': (one, other) => (other.group.slower > 0) - (one.group.slower > 0) || other.group.cost - one.group.cost,
        'newest first': (one, other) => other.time - one.time,
    };

    async function render(index, params, display) {
        const known = await changes.overview();
        const every = known.changes.flatMap((change) => change.groups.map((group) => ({
            change, group, time: known.commits[change.head].measured,
        })));
        const chosen = choices('regressed', params, display);
        const pick = (key, label, values, what) => chosen.among(key, label, values, values[0], what);
        const machine = pick('machine', 'Machine', [EVERY.machine, ...Object.keys(known.machines)], 'changes of machine');
        const kernels = [...new Set(every.map((row) => row.group.kernel))].sort();
        const kernel = pick('kernel', 'Kernel', [EVERY.kernel, ...kernels], 'changes of kernel');
        const shown = pick('show', 'Show', Object.keys(SHOWN), 'choice');
        const order = pick('order', 'Order', Object.keys(ORDERS), 'order');
        chosen.show();
        const of = (choice) => every.filter(({change, group}) => (machine === EVERY.machine ? !group.told : change.machine === machine) &&
            (kernel === EVERY.kernel || group.kernel === kernel) && SHOWN[choice](group));
        const rows = of(shown).sort(ORDERS[order]);
        const list = element('p', {});
        list.append('Every measured commit against the last that measured the same, by the rules of the review. ',
            `Sizes and dtypes are folded; changes below ${100 * known.at_least} % are left out. `,
            element('a', {href: '#regressions', textContent: 'asv’s own list'}), ' has a row for each configuration.');
        const accepted = of('acknowledged').length;
        if (accepted > 0 && shown !== 'acknowledged') {
            list.append(' ', changes.link(`${accepted} ${accepted === 1 ? 'row is' : 'rows are'} acknowledged`,
                'regressed', {machine, kernel, show: 'acknowledged'}), ', each with its reason.');
        }
        display.append(list);
        if (rows.length === 0) {
            view.paragraph(display, 'Nothing of this kind was found.');
            return;
        }
        display.append(changes.table(
            `${rows.length} ${rows.length === 1 ? 'row' : 'rows'}: ${shown}, ${order}`,
            ['kernel', 'machine', 'commit', ...changes.HEADERS.slice(1)],
            rows.map(function ({change, group}) {
                const [name, ...rest] = changes.cells(known, change, group);
                const day = changes.day(known.commits[change.head].measured);
                const commit = element('span', {className: 'commit'}, ...changes.origin(known, change, group.base), ' ',
                    element('span', {className: 'faint', textContent: day}));
                return [name, change.machine, commit, ...rest];
            })));
    }

    view.register('regressed', 'Regressions', render);
});
