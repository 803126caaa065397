// The page Compare: what differs between two measured commits of a machine.
'use strict';

const KIND_NAMES = {timed: 'times', counted: 'counted numbers', compiled: 'compiled numbers'};
const MAX_ROWS = 50;

runPage(async function (choices, display) {
    const index = await loadIndex();
    const name = choices.pickMachine(index, Object.values(index.benchmarks), filterKind(index, 'timed'));
    if (name === null) {
        addParagraph(display, 'Nothing has been measured yet: kernelwatch run');
        return;
    }
    const machine = index.machines[name];
    const kinds = Object.keys(KIND_NAMES).filter((kind) => filterCommits(machine, filterKind(index, kind)).length > 1);
    if (kinds.length === 0) {
        choices.showControls();
        addParagraph(display, `${machine.short} has not measured two commits yet: kernelwatch run`);
        return;
    }
    const kind = choices.pickOption('numbers', 'Numbers', kinds.map((value) => ({value, label: KIND_NAMES[value]})));
    const benchmarks = filterKind(index, kind);
    const commits = choices.pickCommitPair(machine, benchmarks);
    choices.showControls();
    const [base, head] = commits;
    const linkCommit = (commit) => makeElement('a', {href: `commit/${commit.commit}.html`, textContent: shortenHash(commit)});
    display.append(makeElement('p', {}, linkCommit(base), ' → ', linkCommit(head), '. The review of both, with its statistics: ', makeElement('code', {
        textContent: `kernelwatch compare ${shortenHash(base)} ${shortenHash(head)} --machine ${quoteWord(name)}`})));
    const values = await Promise.all(commits.map((commit) => loadCommitValues(machine, commit, benchmarks)));
    const gpus = new Set(commits.flatMap((commit) => listGpus(commit, benchmarks)));
    addGpuNotice(display, index, [...gpus]);
    const cells = listCells(benchmarks, values);
    const measured = cells.filter((cell) => cell.base !== null && cell.head !== null);
    const regenerated = new Set(measured.filter((cell) => isRegenerated(index, commits, cell)));
    const shared = measured.filter((cell) => !regenerated.has(cell)).map(
        (cell) => ({...cell, verdict: judgeCell(cell, machine, gpus.size > 1 ? index.another_gpu : null)}));
    const changed = shared.filter(isChanged).sort((left, right) => measureChange(right) - measureChange(left));
    const countOnly = (side, otherSide) => cells.filter((cell) => cell[side] !== null && cell[otherSide] === null).length;
    const counts = Object.entries(Object.groupBy(shared, ({verdict}) => verdict)).map(([verdict, group]) => `${group.length} ${verdict}`);
    addParagraph(display, `${shared.length} ${KIND_NAMES[kind]} of both commits, judged by thresholds alone: ${counts.join(', ') || 'none'}. ` +
        `${countOnly('base', 'head')} only in base, ${countOnly('head', 'base')} only in head. ` +
        (regenerated.size > 0 ? `${regenerated.size} not compared: other versions of the generator made their PTX. ` : '') +
        (kind === 'timed' ? describeNoise(machine, index) : ''));
    if (changed.length === 0) {
        addParagraph(display, 'No number of both commits changed.');
        return;
    }
    addParagraph(display, HEAT_NOTE);
    const shownCells = shared.filter((cell) => kind === 'timed' || changed.some(({benchmark}) => benchmark === cell.benchmark));
    const kernels = Object.entries(Object.groupBy(shownCells, ({kernel}) => kernel)).map(([kernel, group]) => ({kernel, cells: group}));
    drawHeatMaps(display, index, name, kernels.filter(({cells: group}) => group.some(isChanged)));
    const rows = changed.slice(0, MAX_ROWS).map((cell) => [
        cell.kernel, formatChange(cell), cell.verdict, formatValue(cell.base, cell.benchmark), formatValue(cell.head, cell.benchmark),
        Object.entries(cell.params).filter(([axis]) => axis !== 'kernel').map(([, value]) => value).join(', '), cell.benchmark.title]);
    display.append(makeElement('h2', {textContent: 'Largest changes'}), makeTable(
        `${rows.length} of ${changed.length}, the largest first`,
        ['kernel', 'change, %', 'verdict', 'before', 'after', 'configuration', 'number'], rows));
});

/* Return a cell {benchmark, params, kernel, base, head} for each configuration, from the values of two commits. */
function listCells(benchmarks, values) {
    const [basePoints, headPoints] = values.map((commitValues) => benchmarks.map((benchmark) => listPoints(benchmark, commitValues)));
    return benchmarks.flatMap((benchmark, number) => basePoints[number].map(({params, value}, place) => ({
        benchmark, params, kernel: params.kernel || benchmark.kernel || benchmark.family,
        base: value, head: headPoints[number][place].value})));
}

/* Return whether base and head used different versions of a generator for a cell's PTX. These are two compilers, whose numbers are not
   compared. The page does not know whether the machine code is equal. */
function isRegenerated(index, commits, {benchmark, params}) {
    const [base, head] = commits.map((commit) => findGenerators(index, commit, benchmark, params));
    return base !== null && head !== null && base !== head;
}

/* Return a machine's name, quoted for a shell if necessary. */
const quoteWord = (name) => /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;

const formatShare = (share) => `${+(100 * share).toPrecision(3)} %`;
const describeNoise = ({noise}, index) => `Times within ${noise.map(
    ([least, share]) => `${formatShare(share)} ${least > 0 ? `from ${least * 1e6} µs on` : 'below'}`).join(', ')}, or ` +
    `${formatShare(index.another_gpu)} on two GPUs, are called the same.`;

/* Return the verdict on a cell, by thresholds alone. `gpuNoise` is the threshold of times that two GPUs took, null for one GPU. */
function judgeCell(cell, machine, gpuNoise) {
    const isTime = cell.benchmark.type === 'time';
    const change = Math.expm1(measureChange(cell));
    if (isTime ? change <= (gpuNoise ?? findNoise(cell.base, machine)) : change === 0) {
        return 'same';
    }
    const isWorse = cell.head > cell.base;
    return isTime ? isWorse ? 'slower' : 'faster' : isWorse ? 'rose' : 'fell';
}
