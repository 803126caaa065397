// The page Commits: filters its rows. An address with the first digits of a commit redirects to the page of that commit.
'use strict';

const UNFILTERED = {machine: 'every machine', kernel: 'every kernel', show: 'every commit'};
const VERDICTS = {worse: ['broken', 'failed', 'slower', 'mixed', 'rose'], better: ['repaired', 'faster', 'mixed', 'fell'], acknowledged: ['acknowledged']};

runPage(function (choices) {
    const rows = [...document.getElementById('rows').rows];
    const digits = /^#([0-9a-f]+)$/.exec(window.location.hash)?.[1];
    const target = digits && rows.map((row) => row.querySelector('a')).find((link) => link.textContent.startsWith(digits.slice(0, 8)) &&
        link.pathname.includes(`/${digits}`));
    document.getElementById('unknown').hidden = digits === undefined || target !== undefined;
    if (target) {
        window.location.replace(target.href);
        return;
    }
    const groups = rows.map((row) => JSON.parse(row.dataset.groups));
    const machines = rows.map((row) => row.dataset.machines.split('\n'));
    const listOptions = (key, values) => [UNFILTERED[key], ...[...new Set(values)].sort()];
    const machine = choices.pickOption('machine', 'Machine', listOptions('machine', machines.flat()));
    const kernel = choices.pickOption('kernel', 'Kernel', listOptions('kernel', groups.flat().map(([, name]) => name)));
    const show = choices.pickOption('show', 'Show', [UNFILTERED.show, ...Object.keys(VERDICTS)]);
    choices.showControls();
    const fitsChoices = ([machineName, kernelName, verdict]) => [UNFILTERED.machine, machineName].includes(machine) &&
        [UNFILTERED.kernel, kernelName].includes(kernel) && (show === UNFILTERED.show || VERDICTS[show].includes(verdict));
    const isWide = kernel === UNFILTERED.kernel && show === UNFILTERED.show; // includes commits that changed nothing
    rows.forEach((row, place) => {
        row.hidden = !(groups[place].some(fitsChoices) || isWide && (machine === UNFILTERED.machine || machines[place].includes(machine)));
    });
    const count = rows.filter((row) => !row.hidden).length;
    document.querySelector('caption').textContent = `${count} commit${count === 1 ? '' : 's'}, newest first`;
});
