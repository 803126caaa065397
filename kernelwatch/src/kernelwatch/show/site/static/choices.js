// The choices of a page, such as machine and commit. The address of the page stores them; a change of the address draws the page again.
'use strict';

/** @typedef {ReturnType<typeof makeChoices>} Choices */

/** Return functions that add choices to a page, and show their controls.
 * @param {HTMLElement} display The element that gets the controls and the notices. */
function makeChoices(display) {
    const address = Object.fromEntries(new URLSearchParams(window.location.hash.slice(1)));
    const fields = [];

    /** Add a choice; return the chosen option: that in the address, or `preferred`, or the first. If the value in the address is not an
     * option, add a notice.
     * @type {(key: string, name: string, options: (string | {value: string, label: string})[], preferred?: string) => string} */
    function pickOption(key, name, options, preferred) {
        const labelled = options.map((option) => typeof option === 'string' ? {value: option, label: option} : option);
        const value = [address[key], preferred, labelled[0]?.value].find((text) => labelled.some((option) => option.value === text));
        if (key in address && address[key] !== value) {
            addNotice(display, `No ${name.toLowerCase()} ${address[key]} here; shown is ${value}.`);
        }
        if (labelled.length > 0) {
            fields.push({key, name, options: labelled, value});
        }
        return value;
    }

    /** Add the choice of a machine with values of some benchmarks; return it, null without any. Machines with most commits that have
     * values of `preferred` come first. If there are several machines, `furtherOptions` are added.
     * @type {(index: Index, benchmarks: Benchmark[], preferred?: Benchmark[], furtherOptions?: string[]) => ?string} */
    function pickMachine(index, benchmarks, preferred = benchmarks, furtherOptions = []) {
        const countCommits = (name, measured) => filterCommits(index.machines[name], measured).length;
        const names = Object.keys(index.machines).filter((name) => countCommits(name, benchmarks) > 0).sort(
            (left, right) => countCommits(right, preferred) - countCommits(left, preferred));
        return names.length === 0 ? null : pickOption('machine', 'Machine', [
            ...names.map((value) => ({value, label: index.machines[value].short})), ...names.length > 1 ? furtherOptions : []]);
    }

    /* Return the newest commit of the published branch, as on Overview; without one, the newest commit. */
    const findNewest = (commits) => commits.findLast(({branch}) => !branch) || commits.at(-1);

    /* Add the choice of one of some commits; return it, by default `preferred`. */
    function pickCommitOf(commits, preferred, key, name) {
        const options = commits.toReversed().map(
            (commit) => ({value: shortenHash(commit), label: `${shortenHash(commit)}, ${formatDay(commit)}`}));
        const value = pickOption(key, name, options, shortenHash(preferred));
        return commits.find((commit) => shortenHash(commit) === value);
    }

    /** Add the choice of a commit; return it, by default the newest. If this has less than half as many values as another, a paragraph
     * names a fuller one.
     * @type {(machine: Machine, benchmarks: Benchmark[]) => Commit} */
    function pickCommit(machine, benchmarks) {
        const commits = filterCommits(machine, benchmarks);
        const newest = findNewest(commits);
        const full = findFullest(commits, benchmarks);
        if (full !== newest && countValues(newest, benchmarks) < countValues(full, benchmarks)) {
            addParagraph(display, `The newest commit, ${shortenHash(newest)}, has ${countValues(newest, benchmarks)} values, ` +
                `${shortenHash(full)} has ${countValues(full, benchmarks)}.`);
        }
        return pickCommitOf(commits, newest, 'commit', 'Commit');
    }

    /** Add the choices of base and head; return these commits, by default the last two of the published branch.
     * @type {(machine: Machine, benchmarks: Benchmark[]) => Commit[]} */
    function pickCommitPair(machine, benchmarks) {
        const commits = filterCommits(machine, benchmarks);
        const published = commits.filter(({branch}) => !branch);
        return [
            pickCommitOf(commits, published.at(-2) || commits[0], 'base', 'Base'),
            pickCommitOf(commits, findNewest(commits), 'head', 'Head'),
        ];
    }

    /* Return the control of a choice; a change of its value changes the address. */
    function makeControl({key, name, options, value}) {
        const select = makeElement('select', {name: key, id: `choice-${key}`}, ...options.map((option) => makeElement('option', {
            value: option.value, textContent: option.label, selected: option.value === value})));
        select.addEventListener('change', function () {
            window.location.hash = new URLSearchParams(
                fields.map((field) => [field.key, field.key === key ? select.value : field.value]));
        });
        return makeElement('label', {htmlFor: select.id}, makeElement('span', {textContent: name}), select);
    }

    /** Show the controls. */
    function showControls() {
        const form = makeElement('form', {className: 'project-controls'}, ...fields.map(makeControl));
        form.addEventListener('submit', (event) => event.preventDefault());
        display.append(form);
    }

    return {pickOption, pickMachine, pickCommit, pickCommitPair, showControls};
}
