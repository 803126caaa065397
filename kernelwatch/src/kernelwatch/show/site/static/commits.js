// The page Commits: filters its rows. An address with the first digits of a commit redirects to the page of that commit.
'use strict';

const EVERY = {machine: 'every machine', kernel: 'every kernel', show: 'every commit'};
const WORDS = {worse: ['broken', 'failed', 'slower', 'mixed', 'rose'], better: ['repaired', 'faster', 'mixed', 'fell'], acknowledged: ['acknowledged']};

page(function (chosen) {
    const rows = [...document.getElementById('rows').rows];
    const digits = /^#([0-9a-f]+)$/.exec(window.location.hash)?.[1];
    const found = digits && rows.map((row) => row.querySelector('a')).find((link) => link.textContent.startsWith(digits.slice(0, 8)) &&
        link.pathname.includes(`/${digits}`));
    document.getElementById('unknown').hidden = digits === undefined || found !== undefined;
    if (found) {
        window.location.replace(found.href);
        return;
    }
    const told = rows.map((row) => JSON.parse(row.dataset.told));
    const machines = rows.map((row) => row.dataset.machines.split('\n'));
    const values = (key, all) => [EVERY[key], ...[...new Set(all)].sort()];
    const machine = chosen.pick('machine', 'Machine', values('machine', machines.flat()));
    const kernel = chosen.pick('kernel', 'Kernel', values('kernel', told.flat().map(([, name]) => name)));
    const show = chosen.pick('show', 'Show', [EVERY.show, ...Object.keys(WORDS)]);
    chosen.show();
    const fits = ([where, name, word]) => [EVERY.machine, where].includes(machine) && [EVERY.kernel, name].includes(kernel) &&
        (show === EVERY.show || WORDS[show].includes(word));
    const isWide = kernel === EVERY.kernel && show === EVERY.show; // includes commits that changed nothing
    rows.forEach((row, at) => {
        row.hidden = !(told[at].some(fits) || isWide && (machine === EVERY.machine || machines[at].includes(machine)));
    });
    const count = rows.filter((row) => !row.hidden).length;
    document.querySelector('caption').textContent = `${count} commit${count === 1 ? '' : 's'}, newest first`;
});
