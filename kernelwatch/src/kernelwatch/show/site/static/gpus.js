// Which GPUs of a kind took the times: two of them differ where the machine code does not.
'use strict';

(function (coalescing) {
    /* The GPUs that measured any of the benchmarks on a commit, by the first digits of their UUIDs. */
    function of(known, commit, names) {
        const ids = names.filter((name) => known.benchmarks[name] !== undefined).map((name) => known.benchmarks[name].id);
        return Object.keys(commit.gpus).filter((gpu) => commit.gpus[gpu].some((id) => ids.includes(id)));
    }

    /* Those that took some of its values on a commit, `series`; where no record says it of each value, as `of`. */
    function ofSeries(known, commit, name, series) {
        const told = [...new Set(series.filter((gpu) => gpu !== null))];
        return told.length > 0 ? told : of(known, commit, [name]);
    }

    /* As a cell or a title has them; null where there are none. */
    const named = (found) => found.length === 0 ? null : found.join(', ');

    /* Say so where not one GPU took the values of several commits, each with its `found` GPUs. */
    function notice(display, known, found) {
        const several = [...new Set(found.flat())];
        if (several.length > 1) {
            const percent = +(100 * known.another_gpu).toPrecision(3);
            coalescing.view.notice(display, `Several GPUs of the kind took these times: ${several.join(', ')}. Between two of ` +
                `them, unless they prove alike, the review calls no difference of up to ${percent} % a change.`);
        }
    }

    coalescing.gpus = {of, ofSeries, named, notice};
})(window.coalescing);
