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
    operation: AtomicOperation, chunk: Chunk, place: Value, old: Array, operands: Sequence[Array]
) -> Iterator[Array]:
    """Yield the threads of each CAS round, as masks of the chunk's shape.

    Each round changes a word at most once. Lanes up to and including the lane that changes the word are finished.
    Later lanes on the word retry. For ``cas``, only lanes on the unchanged half retry.

    ``place`` are the addresses. ``old`` are the 16-bit values before the operations of the active threads, in thread
    order, and ``operands`` the operands of these threads.
    """
    shape = chunk.shape
    row, thread = np.nonzero(spread(chunk.active, shape))
    address = spread(dense(place).astype(np.int64), shape)[row, thread]
    warp = row * warp_count(shape[1]) + thread // LANES
    # Each thread has the number of its half and of its word, among those that its warp accesses.
    _, first, half = np.unique(np.stack([warp, address]), axis=1, return_index=True, return_inverse=True)
    _, word = np.unique(np.stack([warp, address // WORD]), axis=1, return_inverse=True)
    half, word, contents = half.ravel(), word.ravel(), old[first]
    pending = np.arange(len(row))
    while pending.size:
        active = np.zeros(shape, bool)
        active[row[pending], thread[pending]] = True
        yield active
        old_contents = contents[half[pending]]
        new = operation.update(old_contents, *(operand[pending] for operand in operands))
        new = new.astype(old_contents.dtype, copy=False)
        changes = new.view("u2") != old_contents.view("u2")
        winner = np.full(int(word.max()) + 1, len(row))  # the first thread that changes each word
        np.minimum.at(winner, word[pending[changes]], pending[changes])
        wins = changes & (pending == winner[word[pending]])
        contents[half[pending[wins]]] = new[wins]
        retries = pending > winner[word[pending]]
        if operation is ATOMICS["cas"]:
            changed_half = np.full(len(winner), -1)
            changed_half[word[pending[wins]]] = half[pending[wins]]
            retries &= half[pending] != changed_half[word[pending]]
        pending = pending[retries]
