// The choices of a page. They are stored in the address: a change of the address draws the page again.
'use strict';

/* Collect the choices of a page, and show them in `display`. */
function choices(display) {
    const asked = Object.fromEntries(new URLSearchParams(window.location.hash.slice(1)));
    const fields = [];

    /* Return one of some options, texts or {value, label}: the one in the address, or `wanted`, or the first. A notice names a value
       in the address that is no option. */
    function pick(key, name, some, wanted) {
        const options = some.map((one) => typeof one === 'string' ? {value: one, label: one} : one);
        const value = [asked[key], wanted, options[0]?.value].find((one) => options.some((option) => option.value === one));
        if (key in asked && asked[key] !== value) {
            notice(display, `No ${name.toLowerCase()} ${asked[key]} here; shown is ${value}.`);
        }
        if (options.length > 0) {
            fields.push({key, name, options, value});
        }
        return value;
    }

    /* Return one of the machines with values of the benchmarks; null without one. Machines with most commits of the `preferred`
       benchmarks come first. With several machines, the options `more` are added. */
    function machine(index, benchmarks, preferred = benchmarks, more = []) {
        const commits = (name, of) => commitsWith(index.machines[name], of).length;
        const names = Object.keys(index.machines).filter((name) => commits(name, benchmarks) > 0).sort(
            (one, other) => commits(other, preferred) - commits(one, preferred));
        return names.length === 0 ? null : pick('machine', 'Machine', [
            ...names.map((value) => ({value, label: index.machines[value].short})), ...names.length > 1 ? more : []]);
    }

    /* Return the newest of some commits on the published branch, as on Overview. */
    const newestOf = (commits) => commits.findLast(({branch}) => !branch) || commits.at(-1);

    /* Return one of a machine's commits. */
    function commitOf(commits, wanted, key, name) {
        const options = commits.toReversed().map((one) => ({value: short(one), label: `${short(one)}, ${day(one)}`}));
        const value = pick(key, name, options, short(wanted));
        return commits.find((commit) => short(commit) === value);
    }

    /* Return one of a machine's commits, by default the newest. A paragraph says so if another commit has more than twice as many
       values. */
    function commit(machine, benchmarks) {
        const commits = commitsWith(machine, benchmarks);
        const newest = newestOf(commits);
        const full = fullest(commits, benchmarks);
        if (full !== newest && count(newest, benchmarks) < count(full, benchmarks)) {
            paragraph(display, `The newest commit, ${short(newest)}, was measured in part: it has ${count(newest, benchmarks)} values, ` +
                `${short(full)} has ${count(full, benchmarks)}.`);
        }
        return commitOf(commits, newest, 'commit', 'Commit');
    }

    /* Return two of a machine's commits, by default the newest and the one before it. */
    function commitPair(machine, benchmarks) {
        const commits = commitsWith(machine, benchmarks);
        const published = commits.filter(({branch}) => !branch);
        return [
            commitOf(commits, published.at(-2) || commits[0], 'base', 'Base'),
            commitOf(commits, newestOf(commits), 'head', 'Head'),
        ];
    }

    function control({key, name, options, value}) {
        const select = element('select', {name: key, id: `choice-${key}`}, ...options.map((option) => element('option', {
            value: option.value, textContent: option.label, selected: option.value === value})));
        select.addEventListener('change', function () {
            window.location.hash = new URLSearchParams(fields.map((one) => [one.key, one.key === key ? select.value : one.value]));
        });
        return element('label', {htmlFor: select.id}, element('span', {textContent: name}), select);
    }

    /* Show the controls. */
    function show() {
        const form = element('form', {className: 'project-controls'}, ...fields.map(control));
        form.addEventListener('submit', (event) => event.preventDefault());
        display.append(form);
    }

    return {pick, machine, commit, commitPair, show};
}
