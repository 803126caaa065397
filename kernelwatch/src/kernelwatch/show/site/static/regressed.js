// The page Regressions: which of its rows are shown, and in which order.
'use strict';

const rows = document.getElementById('rows');
const every = [...rows.tBodies[0].rows]; // the costliest first
const EVERY = {machine: 'every machine', kernel: 'every kernel'};

page(function (chosen) {
    const values = (key) => [EVERY[key], ...new Set(every.map((row) => row.dataset[key]).sort())];
    const picked = {
        machine: chosen.pick('machine', 'Machine', values('machine')), kernel: chosen.pick('kernel', 'Kernel', values('kernel')),
    };
    const what = chosen.pick('show', 'Show', rows.dataset.shown.split('|'));
    const order = chosen.pick('order', 'Order', ['worst first', 'newest first']);
    chosen.show();
    const belongs = (wanted) => ({dataset}) => dataset.shown.split('|').includes(wanted) &&
        (picked.machine !== EVERY.machine || dataset.told === undefined) &&
        Object.entries(picked).every(([key, value]) => [EVERY[key], dataset[key]].includes(value));
    every.forEach((row) => { row.hidden = !belongs(what)(row); });
    rows.tBodies[0].append(...order === 'worst first' ? every : every.toSorted((one, other) => other.dataset.time - one.dataset.time));
    const counted = (wanted) => every.filter(belongs(wanted)).length;
    rows.caption.textContent = `${counted(what)} row${counted(what) === 1 ? '' : 's'}: ${what}, ${order}`;
    const accepted = what === 'acknowledged' ? 0 : counted('acknowledged');
    document.getElementById('accepted').replaceChildren(...accepted === 0 ? [] : [element('a', {
        href: `#${new URLSearchParams({...picked, show: 'acknowledged'})}`,
        textContent: `${accepted} row${accepted === 1 ? ' is' : 's are'} acknowledged`,
    }), ', each with its reason.']);
});
