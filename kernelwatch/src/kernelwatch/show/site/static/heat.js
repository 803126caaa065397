// The heat maps on the pages of commits and on Compare. Each kernel has a table for each set of flags: a row for each size, a column for
// each dtype, and cells coloured by the change.
'use strict';

/**
 * @typedef {{benchmark: Benchmark, params: Params, base: number, head: number, verdict: string}} Cell A configuration's value before
 *     and after.
 */

/** Minimum relative change for each strength of a cell's colour. */
const COLOUR_STEPS = [0.01, 0.03, 0.1, 0.3];
const OPEN_KERNELS = 4; // the others are folded, on a phone all but one
const COLUMN_AXIS = 'dtype';
const TABLE_AXIS = 'flags';

const HEAT_NOTE = 'A cell is the change of a time or count in per cent: red is worse, blue is better. Larger changes have stronger ' +
    'colours; changes within the noise or below 1 % have none. A cell links to its History.';

/** Format the change of a cell in per cent; if the value before is 0, give the value after.
 * @type {(cell: Cell) => string} */
function formatChange({base, head}) {
    const percent = Math.abs(100 * (head / base - 1));
    return base === head ? '0' : base === 0 ? `→${formatExact(head)}` : `${head > base ? '+' : '−'}${percent.toFixed(percent >= 100 ? 0 : 1)}`;
}

/* Format a number with at most four significant digits. */
const formatExact = (value) => String(+value.toPrecision(4));

/** Format a value of a benchmark; a time in seconds is shown in microseconds.
 * @type {(value: number, benchmark: Benchmark) => string} */
const formatValue = (value, {type}) => type === 'time' ? `${formatExact(value * 1e6)} µs` : formatExact(value);

/** Return the size of a cell's change: the absolute logarithm of the ratio of its values.
 * @type {(cell: Cell) => number} */
const measureChange = ({base, head}) => base === head ? 0 : Math.abs(Math.log(Math.max(head, 1e-300) / Math.max(base, 1e-300)));
const isChanged = ({verdict}) => verdict !== 'same';

/* Return the style class of a cell, for the direction and the size of its change. */
function chooseClass(cell) {
    const step = COLOUR_STEPS.filter((least) => Math.expm1(measureChange(cell)) >= least).length;
    return !isChanged(cell) || step === 0 ? 'heat-same' : `heat-${cell.head > cell.base ? 'worse' : 'better'}-${step}`;
}

/* Make the table of the cells with one set of flags. */
function makeHeatTable(machine, caption, columns, rows, cells) {
    const cellsByPlace = new Map(cells.map((cell) => [`${cell.row}\n${cell.column}`, cell]));
    const makeCell = (row, column) => {
        const cell = cellsByPlace.get(`${row}\n${column}`);
        return makeElement('td', {}, cell === undefined ? '' : makeElement('a', {
            className: chooseClass(cell), href: linkHistory(machine, cell.benchmark.name, cell.params),
            title: `${[row, column, caption].filter(Boolean).join(', ')}: ${formatValue(cell.base, cell.benchmark)} → ` +
                `${formatValue(cell.head, cell.benchmark)}, ${cell.verdict}`,
            textContent: isChanged(cell) ? `${cell.sign} ${formatChange(cell)}` : formatChange(cell),
        }));
    };
    const makeHead = (scope, text) => text === '' ? makeElement('td', {}) : makeElement('th', {scope, textContent: text});
    return makeElement('table', {className: 'heat'}, makeElement('caption', {textContent: caption}),
        makeElement('thead', {}, makeElement('tr', {}, makeElement('td', {}), ...columns.map((column) => makeHead('col', column)))),
        makeElement('tbody', {}, ...rows.map(
            (row) => makeElement('tr', {}, makeHead('row', row), ...columns.map((column) => makeCell(row, column))))));
}

/* Compare two lists of numbers for sorting, by the first index at which they differ. */
const compareLists = (left, right) => left.map((number, place) => number - right[place]).find((difference) => difference !== 0) ?? 0;

/* Make the tables of a benchmark's cells, one for each set of flags. Titles of rows omit axes that have one value in all cells. */
function makeHeatTables(machine, cells) {
    const {axes} = cells[0].benchmark;
    const listValues = (axis) => (axes[axis] || []).filter((value) => cells.some(({params}) => params[axis] === value));
    const rowAxes = Object.keys(axes).filter(
        (axis) => axis !== COLUMN_AXIS && axis !== TABLE_AXIS && axis !== 'kernel' && listValues(axis).length > 1);
    const [columns, tables] = [COLUMN_AXIS, TABLE_AXIS].map(listValues).map((values) => values.length > 0 ? values : ['']);
    const listOrder = (cell) => rowAxes.map((axis) => axes[axis].indexOf(cell.params[axis]));
    const placed = cells.toSorted((left, right) => compareLists(listOrder(left), listOrder(right))).map((cell) => ({
        ...cell, row: rowAxes.map((axis) => cell.params[axis]).join(', '), column: cell.params[COLUMN_AXIS] ?? '',
        table: cell.params[TABLE_AXIS] ?? '',
    }));
    return tables.map((name) => {
        const shown = placed.filter(({table}) => table === name);
        const rows = [...new Set(shown.map(({row}) => row))];
        return makeHeatTable(machine, name || cells[0].benchmark.title, columns, rows, shown);
    });
}

/** Draw the heat maps of a machine's kernels, the largest change to the worse first.
 * @type {(display: HTMLElement, index: Index, machine: string, kernels: {kernel: string, cells: Cell[]}[]) => void} */
function drawHeatMaps(display, {signs}, machine, kernels) {
    const rankCells = (cells) => Math.max(
        ...cells.filter(isChanged).map((cell) => measureChange(cell) * (cell.head > cell.base ? 1 : 1e-6)), 0);
    const sorted = kernels.toSorted((left, right) => rankCells(right.cells) - rankCells(left.cells));
    const open = window.innerWidth > NARROW ? OPEN_KERNELS : 1;
    sorted.forEach(({kernel, cells}, place) => {
        const verdicts = Object.entries(Object.groupBy(cells.filter(isChanged), ({verdict}) => verdict)).map(
            ([verdict, group]) => `${signs[verdict]} ${group.length} ${verdict}`).join(', ');
        const signed = cells.map((cell) => ({...cell, sign: signs[cell.verdict]}));
        const benchmarks = Object.values(Object.groupBy(signed, ({benchmark}) => benchmark.name));
        display.append(makeElement('details', {open: place < open, className: 'heat-maps'},
            makeElement('summary', {}, makeElement('strong', {}, ...breakName(kernel)), ` ${verdicts || 'nothing'} of ${cells.length}`),
            ...benchmarks.flatMap((group) => [
                makeElement('p', {textContent: group[0].benchmark.title}),
                makeElement('div', {className: 'heat-row'}, ...makeHeatTables(machine, group))])));
    });
}
