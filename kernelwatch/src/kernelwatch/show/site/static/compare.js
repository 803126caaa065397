// The page Compare: what differs between two measured commits of a machine.
'use strict';

const KIND_NAMES = {timed: 'times', counted: 'counted numbers', compiled: 'compiled numbers'};
const MAX_ROWS = 50;

page(async function (chosen, display) {
    const index = await loadIndex();
    const name = chosen.machine(index, Object.values(index.benchmarks), ofKind(index, 'timed'));
    if (name === null) {
        paragraph(display, 'Nothing has been measured yet: kernelwatch run');
        return;
    }
    const machine = index.machines[name];
    const kinds = Object.keys(KIND_NAMES).filter((kind) => commitsWith(machine, ofKind(index, kind)).length > 1);
    if (kinds.length === 0) {
        chosen.show();
        paragraph(display, `${machine.short} has not measured two commits yet: kernelwatch run`);
        return;
    }
    const shown = chosen.pick('numbers', 'Numbers', kinds.map((value) => ({value, label: KIND_NAMES[value]})));
    const benchmarks = ofKind(index, shown);
    const commits = chosen.commitPair(machine, benchmarks);
    chosen.show();
    const [base, head] = commits;
    const linkCommit = (commit) => element('a', {href: `commit/${commit.commit}.html`, textContent: short(commit)});
    display.append(element('p', {}, linkCommit(base), ' → ', linkCommit(head), '. The review of both, with its statistics: ', element('code', {
        textContent: `kernelwatch compare ${short(base)} ${short(head)} --machine ${quoteWord(name)}`})));
    const values = await Promise.all(commits.map((commit) => valuesAt(machine, commit, benchmarks)));
    const gpus = new Set(commits.flatMap((commit) => gpusOf(commit, benchmarks)));
    noticeGpus(display, index, [...gpus]);
    const [before, after] = values.map((commitValues) => benchmarks.map((benchmark) => points(benchmark, commitValues)));
    const cells = benchmarks.flatMap((benchmark, at) => before[at].map(({params, value}, place) => ({
        benchmark, params, base: value, head: after[at][place].value, kernel: params.kernel || benchmark.kernel || benchmark.family})));
    const both = cells.filter((cell) => cell.base !== null && cell.head !== null).map(
        (cell) => ({...cell, verdict: judgeCell(cell, machine, gpus.size > 1 ? index.another_gpu : null)}));
    const changed = both.filter(isChanged).sort((left, right) => measureChange(right) - measureChange(left));
    const countOnly = (side, other) => cells.filter((cell) => cell[side] !== null && cell[other] === null).length;
    const counts = Object.entries(Object.groupBy(both, ({verdict}) => verdict)).map(([verdict, group]) => `${group.length} ${verdict}`);
    paragraph(display, `${both.length} ${KIND_NAMES[shown]} of both commits: ${counts.join(', ') || 'none'}. ` +
        `${countOnly('base', 'head')} of the base alone, ${countOnly('head', 'base')} of the head alone. ` + (shown === 'timed' ? describeNoise(machine, index) : ''));
    if (changed.length === 0) {
        paragraph(display, 'Nothing changed.');
        return;
    }
    paragraph(display, HEAT_NOTE);
    const isShown = (cell) => shown === 'timed' || changed.some(({benchmark}) => benchmark === cell.benchmark);
    const kernels = Object.entries(Object.groupBy(both.filter(isShown), ({kernel}) => kernel)).map(([kernel, group]) => ({kernel, cells: group}));
    drawHeatMaps(display, index, name, kernels.filter(({cells: group}) => group.some(isChanged)));
    const rows = changed.slice(0, MAX_ROWS).map((cell) => [
        cell.kernel, Object.entries(cell.params).filter(([axis]) => axis !== 'kernel').map(([, value]) => value).join(', '),
        formatValue(cell.base, cell.benchmark), formatValue(cell.head, cell.benchmark), formatChange(cell), cell.verdict]);
    display.append(element('h2', {textContent: 'Largest changes'}),
        table(`${rows.length} of ${changed.length}, the largest first`, ['kernel', 'configuration', 'before', 'after', 'change, %', ''], rows));
});

/* The machine's name in a command of a shell. */
const quoteWord = (name) => /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;

const formatShare = (share) => `${+(100 * share).toPrecision(3)} %`;
const describeNoise = ({noise}, {another_gpu: other}) => `Times within ${noise.map(
    ([least, share]) => `${formatShare(share)} ${least > 0 ? `from ${least * 1e6} µs on` : 'below'}`).join(', ')}, or ${formatShare(other)} on two GPUs, are called the same.`;

/* The verdict on a cell; `ofTwoGpus` is the threshold of times that two GPUs took. */
function judgeCell(cell, machine, ofTwoGpus) {
    const isTime = cell.benchmark.type === 'time';
    const change = Math.expm1(measureChange(cell));
    if (isTime ? change <= (ofTwoGpus ?? noiseOf(cell.base, machine)) : change === 0) {
        return 'same';
    }
    const isWorse = cell.head > cell.base;
    return isTime ? isWorse ? 'slower' : 'faster' : isWorse ? 'rose' : 'fell';
}
