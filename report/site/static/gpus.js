// Which GPUs of a kind took the times: two of them differ where the machine code does not.
'use strict';

(function (coalescing) {
    /* The GPUs that measured any of the benchmarks on a commit, by the first digits of their UUIDs. */
    function of(commit, benchmarks) {
        return Object.keys(commit.gpus).filter((gpu) => benchmarks.some(({id}) => commit.gpus[gpu].includes(id)));
    }

    /* What to say beside times of several commits, each with its `found` GPUs; empty if one GPU took all. */
    function told(index, found) {
        const several = new Set(found.flat());
        return several.size < 2 ? '' : `${several.size} GPUs of the kind took these times, ${[...several].join(', ')}: between ` +
            `two, the review takes differences of up to ${+(100 * index.another_gpu).toPrecision(3)} % for theirs.`;
    }

    coalescing.gpus = {of, told};
})(window.coalescing);
