// The choices of a page. Each lives in the address: changing one changes the address, which shows the page anew.
'use strict';

/* Collects the choices of a page; `display` is where they are shown. */
function choices(display) {
    const asked = Object.fromEntries(new URLSearchParams(window.location.hash.slice(1)));
    const fields = [];

    /* One of some options, texts or {value, label}: that of the address, or `wanted`, or the first. A value in the address that
       is no option is told of. */
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

    /* One of the machines with values of some benchmarks, those with most commits of the `preferred` first, and what there is to
       choose `more` of several; null where none has any. */
    function machine(index, benchmarks, preferred = benchmarks, more = []) {
        const commits = (name, of) => commitsWith(index.machines[name], of).length;
        const names = Object.keys(index.machines).filter((name) => commits(name, benchmarks) > 0).sort(
            (one, other) => commits(other, preferred) - commits(one, preferred));
        return names.length === 0 ? null : pick('machine', 'Machine', [
            ...names.map((value) => ({value, label: index.machines[value].short})), ...names.length > 1 ? more : []]);
    }

    /* One of a machine's commits, newest first; the newest of the published branch is opened, as on Overview. It says so where another
       has more than twice as many values. */
    function commit(machine, benchmarks) {
        const commits = commitsWith(machine, benchmarks);
        const newest = commits.findLast(({branch}) => !branch) || commits.at(-1);
        const full = fullest(commits, benchmarks);
        if (full !== newest && count(newest, benchmarks) < count(full, benchmarks)) {
            paragraph(display, `The newest commit, ${short(newest)}, was measured in part: it has ${count(newest, benchmarks)} values, ` +
                `${short(full)} has ${count(full, benchmarks)}.`);
        }
        const options = commits.toReversed().map((one) => ({value: short(one), label: `${short(one)}, ${day(one)}`}));
        const value = pick('commit', 'Commit', options, short(newest));
        return commits.find((one) => short(one) === value);
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

    return {pick, machine, commit, show};
}
