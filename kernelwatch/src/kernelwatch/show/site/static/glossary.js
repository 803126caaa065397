// What the terms of the pages mean, told where they stand.
'use strict';

(function (coalescing) {
    /* A term as texts have it, and its meaning: of several that fit, the first counts. */
    const TERMS = [
        [/\buseful (?:GB\/s|bytes)\b/i, 'Useful bytes: each element of the input once and each of the output once, however often a ' +
            'kernel really moves them. Useful GB/s are these bytes over the time.'],
        [/\btheoretical peak\b|\b% of peak\b/i, 'Theoretical peak: the width of the memory bus times its clock, as the driver reports ' +
            'them. It is that of DRAM. Copies stay below it; rates from the L2 cache can lie above.'],
        [/\bplain copy\b|\bcopies of the same bytes\b|\ba copy\b|\bcopies\b/i, 'Copy: a kernel that moves as many bytes from one buffer to ' +
            'another, 16 bytes a thread. What only moves data can hardly be faster. "1.2 copies" takes 1.2 times as long.'],
        [/\bback to back\b/i, 'Back to back: many launches follow one another without a pause, and the time of all is divided by their ' +
            'number. The start of one hides behind the end of the one before.'],
        [/\bisolated\b/i, 'Isolated: one launch by itself on an idle GPU, its start and its end included.'],
        [/\bbank conflicts?\b/i, 'Bank conflict: shared memory has 32 banks, 4 bytes wide. Threads of a warp that want different words of ' +
            'one bank are served one after another. Counted are the extra wavefronts.'],
        [/\bwavefronts?\b/i, 'Wavefront: one pass of shared memory. A request without bank conflicts, of up to 4 bytes a thread, takes one.'],
        [/\brequests?\b/i, 'Request: one load or store instruction of one warp, which is 32 threads.'],
        [/\bsectors?\b/i, 'Sector: 32 bytes that begin at a multiple of 32, the least that moves between the caches and DRAM. Bytes of a ' +
            'sector that nobody uses are moved all the same.'],
        [/\bcache lines?\b|\ba line of the L1 cache\b|\blines a (?:load|store)\b/i, 'Line: 128 bytes of a cache, four sectors.'],
        [/\bspilled\b/i, 'Spilled: values that found no register and lie in memory, which costs loads and stores.'],
        [/\bcubin\b/i, 'Cubin: the file with a kernel\'s machine code for one architecture.'],
    ];

    function show(display, meaning) {
        const box = coalescing.view.element('div', {className: 'project-meaning', popover: 'auto', role: 'note', textContent: meaning});
        box.addEventListener('toggle', ({newState}) => newState === 'closed' && box.remove());
        display.append(box);
        box.showPopover();
    }

    /* The parts of a text: at its first place, each term is a button that tells its meaning. */
    function explained(text, terms = TERMS) {
        const found = terms.map(([pattern, meaning]) => ({match: pattern.exec(text), meaning})).find(({match}) => match !== null);
        if (found === undefined) {
            return text === '' ? [] : [text];
        }
        const {match: {0: term, index}, meaning} = found;
        const others = terms.filter((one) => one[1] !== meaning);
        const button = coalescing.view.element('button', {
            type: 'button', className: 'project-term', textContent: term,
            onclick: (event) => show(document.querySelector('main'), meaning),
        });
        return [...explained(text.slice(0, index), others), button, ...explained(text.slice(index + term.length), others)];
    }

    coalescing.glossary = {explained};
})(window.coalescing = window.coalescing || {});
