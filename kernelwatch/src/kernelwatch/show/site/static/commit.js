// The page of a commit: who wrote what, which machine code it changed, and the review's verdicts on every machine.
'use strict';

$(document).ready(function () {
    const {view, choices, changes} = window.coalescing;
    const {element} = view;

    async function render(index, params, display) {
        const known = await changes.overview();
        const when = (hash) => known.commits[hash].measured;
        const hashes = Object.keys(known.commits).sort((one, other) => when(other) - when(one));
        if (hashes.length === 0) {
            view.paragraph(display, 'Nothing has been measured yet: make bench');
            return;
        }
        const asked = params.hash === undefined ? null : params.hash[0];
        const found = asked && hashes.find((hash) => hash.startsWith(asked));
        const chosen = choices('commit', found ? {...params, hash: [changes.short(found)]} : params, display);
        const hash = chosen.add('hash', 'Commit', hashes.map((one) => ({
            value: changes.short(one), label: `${changes.short(one)}, ${changes.day(known.commits[one].measured)}`,
        })), changes.short(hashes[0]), 'measured commit');
        chosen.show();
        const full = hashes.find((one) => one.startsWith(hash));
        facts(display, known, full);
        const here = known.changes.filter((change) => change.head === full).sort(
            (one, other) => other.judged - one.judged);
        here.forEach((change) => verdicts(display, known, change));
        firsts(display, known, full, here);
        cubins(display, here);
    }

    function facts(display, known, hash) {
        const commit = known.commits[hash];
        display.append(element('h2', {textContent: changes.subject(known, hash)}));
        const list = element('dl', {className: 'facts'});
        const fact = (name, ...content) => list.append(element('dt', {textContent: name}), element('dd', {}, ...content));
        fact('commit', element('code', {textContent: hash}));
        fact('author', commit.author || 'unknown');
        fact('date', changes.day(commit.measured));
        if (known.commit_url !== null) {
            fact('repository', element('a', {
                href: known.commit_url + hash, textContent: known.commit_url + changes.short(hash),
            }));
        }
        const files = commit.files || [];
        const [first, rest] = [files.slice(0, 12), files.slice(12)];
        fact('files', files.length === 0 ? 'none known' : element('ul', {}, ...first.map(
            (file) => element('li', {}, element('code', {textContent: file})))));
        if (rest.length > 0) {
            list.lastChild.append(element('details', {}, element('summary', {textContent: `${rest.length} more`}), element(
                'ul', {}, ...rest.map((file) => element('li', {}, element('code', {textContent: file}))))));
        }
        display.append(list);
    }

    /* The verdicts on one machine, and which commits lie between the two that were measured. */
    function verdicts(display, known, change) {
        const heading = element('h2', {textContent: change.machine});
        display.append(heading);
        if (change.base === null) {
            view.paragraph(display, 'No earlier commit has a value of what was measured here: nothing is compared.');
            return;
        }
        const between = change.between[change.base];
        display.append(element('p', {}, 'Compared with ', changes.commitLink(change.base), ` “${changes.subject(known, change.base)}”`,
            `, ${between.count} ${between.count === 1 ? 'commit' : 'commits'} before.`,
            change.new > 0 ? ` ${change.new} configurations are measured for the first time.` : ''));
        if (change.broken.length > 0) {
            view.notice(display, `${change.broken.length} configurations fail that did not before: ` +
                change.broken.slice(0, 3).join(', '));
        }
        const groups = change.groups;
        if (groups.length === 0) {
            view.paragraph(display, `No change of ${100 * known.at_least} % or more: ` +
                `${Object.keys(change.kernels).length} kernels are the same.`);
        } else {
            const caption = `${change.machine}: by kernel and flags; the mean change of those configurations in brackets`;
            display.append(changes.table(caption, changes.HEADERS, groups.map((group) => changes.cells(known, change, group))));
        }
        const {touching} = between;
        if (groups.length > 0 && between.count > 1 && touching.length > 0) {
            display.append(element('details', {}, element('summary', {
                textContent: `${touching.length} of these ${between.count} commits touch the kernels`,
            }), element('ul', {}, ...touching.map((one) => element(
                'li', {}, element('code', {textContent: changes.short(one.commit)}), ` ${one.subject}`)))));
        }
        if (change.notes.length > 0) {
            const count = change.notes.length === 1 ? 'A note' : `${change.notes.length} notes`;
            display.append(element('details', {}, element('summary', {textContent: `${count} on the measurement`}),
                element('ul', {}, ...change.notes.map((note) => element('li', {textContent: note})))));
        }
    }

    /* Machines that measured this commit and none before. */
    function firsts(display, known, hash, here) {
        Object.entries(known.machines).filter(([name, machine]) => machine.commits.includes(hash) &&
            !here.some((change) => change.machine === name)).forEach(function ([name]) {
            display.append(element('h2', {textContent: name}));
            view.paragraph(display, 'This is the first commit that was measured here: nothing is compared.');
        });
    }

    /* Which cubins changed, a row a kernel, a column an architecture; machines with one compiler tell the same. */
    function cubins(display, here) {
        const stored = here.filter((change) => change.cubins.length > 0);
        display.append(element('h2', {textContent: 'Machine code'}));
        if (stored.length === 0) {
            view.paragraph(display, 'No run stored the hashes of the machine code of this commit and of the one measured before.');
            return;
        }
        const most = stored.sort((one, other) => other.cubins.length - one.cubins.length)[0];
        const archs = [...new Set(most.cubins.map((row) => row.arch))];
        const kernels = [...new Set(most.cubins.map((row) => row.kernel))];
        const of = (kernel, arch) => most.cubins.find((row) => row.kernel === kernel && row.arch === arch);
        const text = (row) => row === undefined ? '–' : row.changed === 0 ? 'same' : `${row.changed} of ${row.of} changed`;
        const rows = kernels.map((kernel) => [kernel, ...archs.map((arch) => text(of(kernel, arch)))]);
        display.append(changes.table(
            `Cubins that differ from those of ${changes.short(most.previous)}, by kernel and architecture`, ['kernel', ...archs], rows));
    }

    view.register('commit', 'Commit', render);
});
