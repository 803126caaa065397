"""CAS loops on 32-bit words, to which ptxas compiles 16-bit atomics (sm_90, nvcc 13.0.88).

``atom.add`` of f16 and bf16 reads the 32-bit word and repeats a 32-bit CAS until it succeeds. ``atom.cas.b16`` repeats
only if the other half of the word has changed. Lanes succeed in lane order (measured: 264 launches of one warp on an
H200).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ..counting.transactions import WORD
from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import LANES, Array, spread, warp_count
from ..machine.chunk import Chunk
from .atomic_operations import ATOMICS, AtomicOperation


def iter_swap_rounds(
    operation: AtomicOperation, chunk: Chunk, address: Value, old: Array, operands: Sequence[Array]
) -> Iterator[Array]:
    """Yield the threads of each CAS round, as masks of the chunk's shape.

    In a round, all waiting lanes of a warp try. The first lane that changes the word wins. It is finished, and so are
    the lanes before it, which change nothing. The lanes after it try again; of ``cas``, only those on the other half.

    ``address`` has the addresses of the threads. ``old`` are the 16-bit values before the operations of the active
    threads, in thread order, and ``operands`` the operands of these threads.
    """
    shape = chunk.shape
    row, thread = np.nonzero(spread(chunk.active, shape))
    addresses = spread(dense(address).astype(np.int64), shape)[row, thread]
    warp = row * warp_count(shape[1]) + thread // LANES
    # Number the halves and the words that each warp accesses. `half` and `word` have the numbers of each thread.
    _, first, half = np.unique(np.stack([warp, addresses]), axis=1, return_index=True, return_inverse=True)
    _, word = np.unique(np.stack([warp, addresses // WORD]), axis=1, return_inverse=True)
    half, word, contents = half.ravel(), word.ravel(), old[first]
    waiting = np.arange(len(row))
    while waiting.size:
        active = np.zeros(shape, bool)
        active[row[waiting], thread[waiting]] = True
        yield active
        old_contents = contents[half[waiting]]
        new = operation.update(old_contents, *(operand[waiting] for operand in operands))
        new = new.astype(old_contents.dtype, copy=False)
        changes = new.view("u2") != old_contents.view("u2")
        # The first thread that changes each word; without one, all threads are finished.
        winner = np.full(int(word.max()) + 1, len(row))
        np.minimum.at(winner, word[waiting[changes]], waiting[changes])
        wins = changes & (waiting == winner[word[waiting]])
        contents[half[waiting[wins]]] = new[wins]
        retries = waiting > winner[word[waiting]]
        if operation is ATOMICS["cas"]:
            changed_half = np.full(len(winner), -1)
            changed_half[word[waiting[wins]]] = half[waiting[wins]]
            retries &= half[waiting] != changed_half[word[waiting]]
        waiting = waiting[retries]
