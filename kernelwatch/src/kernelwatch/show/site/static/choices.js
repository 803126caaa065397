// The choices of a page. Each lives in the address: changing one changes the address, which shows the page anew.
'use strict';

(function (coalescing) {
    const {data, view} = coalescing;
    const {element} = view;

    /* Collects the choices of a page; the address's `params` say what was chosen, `display` is where it is shown. */
    function choices(params, display) {
        const fields = [];

        /* A choice's value: that of the address if it is one of the options, else the default. A value in the address
           that is no option is told of. */
        function add(key, label, options, otherwise, what) {
            const asked = params[key];
            const known = options.some((option) => option.value === asked);
            if (!known && asked !== undefined) {
                view.notice(display, `No ${what} ${asked} here; shown is ${otherwise}.`);
            }
            const value = known ? asked : otherwise;
            if (options.length > 0) {
                fields.push({key, label, options, value});
            }
            return value;
        }

        /* One of some texts, by preference `wanted`. */
        function among(key, label, values, wanted, what = label.toLowerCase()) {
            const options = values.map((value) => ({value, label: value}));
            return add(key, label, options, values.includes(wanted) ? wanted : values[0], what);
        }

        /* One of the machines: its name and what is known of it. */
        function machine(known, names, what) {
            const name = among('machine', 'Machine', names, names[0], what);
            return {name, ...known.machines[name]};
        }

        /* How the values of lines are spaced. */
        const scale = () => among('scale', 'Scale of lines', ['linear', coalescing.charts.LOG], 'linear', 'scale');

        /* How sizes and strides are spaced. */
        const spacing = () => among('spacing', 'Spacing of sizes', ['equal', coalescing.charts.LOG], 'equal', 'spacing');

        /* Show the controls. */
        function show() {
            const form = element('form', {className: 'project-controls'}, ...fields.map(control));
            form.addEventListener('submit', (event) => event.preventDefault());
            display.append(form);
        }

        function control(field) {
            const select = element('select', {name: field.key, id: `choice-${field.key}`});
            select.append(...field.options.map((option) => element('option', {
                value: option.value, textContent: option.label, selected: option.value === field.value,
            })));
            select.addEventListener('change', function () {
                window.location.hash = new URLSearchParams(fields.map(
                    (one) => [one.key, one === field ? select.value : one.value]));
            });
            return element('label', {htmlFor: select.id}, element('span', {textContent: field.label}), select);
        }

        return {add, among, machine, scale, spacing, show};
    }

    /* The names of the machines with a value of one of the benchmarks, those that measured most commits first. */
    function machines(known, names) {
        const measured = (machine) =>
            known.machines[machine].commits.filter((commit) => data.has(known, commit, names)).length;
        return Object.keys(known.machines).filter(measured).sort((one, other) => measured(other) - measured(one));
    }

    /* Options of a machine's commits with a value of one of the benchmarks, newest first. */
    function commits(known, machine, names) {
        return machine.commits.filter((commit) => data.has(known, commit, names)).reverse().map((commit) => ({
            value: short(commit), label: `${short(commit)}, ${day(commit)}`, commit,
        }));
    }

    /* Of such options the newest that has no fewer than half as many values of the benchmarks as any: a run of some benchmarks, or
       of some configurations, would leave most of a page blank. */
    function fullest(options, known, names) {
        const most = Math.max(...options.map(({commit}) => data.count(known, commit, names)));
        return options.find(({commit}) => 2 * data.count(known, commit, names) >= most);
    }

    /* The same, as the choice's value; it says so where a newer one has less. */
    function newest(display, options, known, names) {
        const found = fullest(options, known, names);
        const count = ({commit}) => data.count(known, commit, names);
        if (found !== options[0]) {
            view.paragraph(display, `Opened is ${found.value}, the newest commit that has most of what this page shows. Newer ones ` +
                `have less: ${options[0].value} has ${count(options[0])} values, ${found.value} ${count(found)}.`);
        }
        return found.value;
    }

    const short = (commit) => commit.commit.slice(0, 8);
    const day = (commit) => new Date(commit.date).toISOString().slice(0, 10);

    coalescing.choices = Object.assign(choices, {machines, commits, fullest, newest, short, day});
})(window.coalescing);
