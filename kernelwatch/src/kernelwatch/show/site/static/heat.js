// The heat maps of a commit and of Compare: for each kernel a table of each set of flags, sizes by dtypes, coloured by the change.
'use strict';

/* Relative changes from which on a cell has the next colour. */
const HEAT = [0.01, 0.03, 0.1, 0.3];
const SHOWN_KERNELS = 4; // open; the others are folded, on a phone all but one
const AXIS_OF_COLUMNS = 'dtype';
const AXIS_OF_TABLES = 'flags';

/* The change of a cell in per cent, or its value after if it was 0 before. */
const formatChange = ({base, head}) => base === head ? '0' : base === 0 ? `→${formatExact(head)}`
    : `${head > base ? '+' : '−'}${digits(Math.abs(100 * (head / base - 1))).replace(/^(\d+\.\d)\d$/, '$1')}`;

const formatExact = (value) => String(+value.toPrecision(4));
const formatValue = (value, {type}) => type === 'time' ? `${formatExact(value * 1e6)} µs` : formatExact(value);
const measureChange = ({base, head}) => base === head ? 0 : Math.abs(Math.log(Math.max(head, 1e-300) / Math.max(base, 1e-300)));
const isChanged = ({verdict}) => verdict !== 'same';

/* The class of a cell: the direction and the size of its change. */
function chooseClass(cell) {
    const step = HEAT.filter((least) => Math.expm1(measureChange(cell)) >= least).length;
    return !isChanged(cell) || step === 0 ? 'heat-same' : `heat-${cell.head > cell.base ? 'worse' : 'better'}-${step}`;
}

/* A table of the cells with one set of flags. */
function makeHeatTable(machine, caption, columns, rows, cells) {
    const at = new Map(cells.map((cell) => [`${cell.row}\n${cell.column}`, cell]));
    const makeCell = (row, column) => {
        const cell = at.get(`${row}\n${column}`);
        return element('td', {}, cell === undefined ? '' : element('a', {
            className: chooseClass(cell), href: historyLink(machine, cell.benchmark.name, cell.params),
            title: `${[row, column, caption].filter(Boolean).join(', ')}: ${formatValue(cell.base, cell.benchmark)} → ` +
                `${formatValue(cell.head, cell.benchmark)}, ${cell.verdict}`,
            textContent: isChanged(cell) ? `${cell.sign} ${formatChange(cell)}` : formatChange(cell),
        }));
    };
    return element('table', {className: 'heat'}, element('caption', {textContent: caption}),
        element('thead', {}, element('tr', {}, element('td', {}), ...columns.map((column) => element('th', {scope: 'col', textContent: column})))),
        element('tbody', {}, ...rows.map((row) => element('tr', {}, element('th', {scope: 'row', textContent: row}),
            ...columns.map((column) => makeCell(row, column))))));
}

/* The order of two lists of numbers, by the first that differs. */
const compareLists = (left, right) => left.map((number, at) => number - right[at]).find((difference) => difference !== 0) ?? 0;

/* The tables of a benchmark's cells {benchmark, params, base, head, verdict, sign}. Axes of which all cells have one value name no row. */
function makeHeatTables(machine, cells) {
    const {axes} = cells[0].benchmark;
    const values = (axis) => (axes[axis] || []).filter((value) => cells.some(({params}) => params[axis] === value));
    const rowAxes = Object.keys(axes).filter(
        (axis) => axis !== AXIS_OF_COLUMNS && axis !== AXIS_OF_TABLES && axis !== 'kernel' && values(axis).length > 1);
    const [columns, tables] = [values(AXIS_OF_COLUMNS), values(AXIS_OF_TABLES)].map((names) => names.length > 0 ? names : ['']);
    const order = (cell) => rowAxes.map((axis) => axes[axis].indexOf(cell.params[axis]));
    const placed = cells.toSorted((left, right) => compareLists(order(left), order(right))).map((cell) => ({
        ...cell, row: rowAxes.map((axis) => cell.params[axis]).join(', '), column: cell.params[AXIS_OF_COLUMNS] ?? '',
        table: cell.params[AXIS_OF_TABLES] ?? '',
    }));
    return tables.map((name) => {
        const shown = placed.filter(({table}) => table === name);
        const rows = [...new Set(shown.map(({row}) => row))];
        return makeHeatTable(machine, name || cells[0].benchmark.title, columns, rows, shown);
    });
}

/* Draw the heat maps of the kernels [{kernel, cells}] of a machine, the largest change to the worse first. `signs` are those of verdicts. */
function drawHeatMaps(display, {signs}, machine, kernels) {
    const rank = (cells) => Math.max(...cells.filter(isChanged).map((cell) => measureChange(cell) * (cell.head > cell.base ? 1 : 1e-6)), 0);
    const sorted = kernels.toSorted((left, right) => rank(right.cells) - rank(left.cells));
    const shown = window.innerWidth > NARROW ? SHOWN_KERNELS : 1;
    sorted.forEach(({kernel, cells}, place) => {
        const verdicts = Object.entries(Object.groupBy(cells.filter(isChanged), ({verdict}) => verdict)).map(
            ([verdict, group]) => `${group.length} ${verdict}`).join(', ');
        const signed = cells.map((cell) => ({...cell, sign: signs[cell.verdict]}));
        const benchmarks = Object.values(Object.groupBy(signed, ({benchmark}) => benchmark.name));
        display.append(element('details', {open: place < shown, className: 'heat-maps'},
            element('summary', {}, element('strong', {}, ...breakable(kernel)), ` ${verdicts || 'nothing'} of ${cells.length}`),
            ...benchmarks.flatMap((group) => [
                element('p', {textContent: group[0].benchmark.title}),
                element('div', {className: 'heat-row'}, ...makeHeatTables(machine, group))])));
    });
}

const HEAT_NOTE = 'A cell is the change in per cent, red if it became worse and blue if it became better, the stronger the larger. ' +
    'Changes within the noise have no colour. A cell leads to its History.';
