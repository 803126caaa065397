// The page Regressions: which of its rows are shown, and in which order.
'use strict';

(function ({choices, view}) {
    const table = document.getElementById('rows');
    const every = [...table.tBodies[0].rows]; // the costliest first
    const EVERY = {machine: 'every machine', kernel: 'every kernel'};
    const values = (key) => [EVERY[key], ...new Set(every.map((row) => row.dataset[key]).sort())];

    view.page(function (params, display) {
        const chosen = choices(params, display);
        const picked = {
            machine: chosen.among('machine', 'Machine', values('machine'), EVERY.machine, 'changes of machine'),
            kernel: chosen.among('kernel', 'Kernel', values('kernel'), EVERY.kernel, 'changes of kernel'),
        };
        const shown = chosen.among('show', 'Show', table.dataset.shown.split('|'), undefined, 'choice');
        const order = chosen.among('order', 'Order', ['worst first', 'newest first'], 'worst first', 'order');
        chosen.show();
        const belongs = (what) => ({dataset}) => dataset.shown.split('|').includes(what) &&
            (picked.machine !== EVERY.machine || dataset.told === undefined) &&
            Object.entries(picked).every(([key, value]) => [EVERY[key], dataset[key]].includes(value));
        const rows = every.filter(belongs(shown));
        every.forEach((row) => { row.hidden = !rows.includes(row); });
        table.tBodies[0].append(...(order === 'worst first' ? every : [...every].sort(
            (one, other) => other.dataset.time - one.dataset.time)));
        const count = (number) => `${number} ${number === 1 ? 'row' : 'rows'}`;
        table.caption.textContent = `${count(rows.length)}: ${shown}, ${order}`;
        const accepted = every.filter(belongs('acknowledged')).length;
        document.getElementById('accepted').replaceChildren(...(accepted === 0 || shown === 'acknowledged' ? [] : [
            view.element('a', {
                href: `#${new URLSearchParams({...picked, show: 'acknowledged'})}`,
                textContent: `${count(accepted)} ${accepted === 1 ? 'is' : 'are'} acknowledged`,
            }), ', each with its reason.']));
    });
})(window.coalescing);
