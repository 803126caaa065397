"""Threads that wait for others behind a loop with a ``YIELD``, and those that do not (traces of an H200).

Threads that enter the loop together take part in its convergence barrier. Those that leave it wait there until the
others yield to them. Then the barrier is empty: threads that still are in the loop will not wait. Threads that enter
the loop again take part again, and wait when they leave it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..lanes.warps import LANES, Array, spread, warp_count


class YieldingLoop(NamedTuple):
    """A loop with a ``YIELD``, by indices of basic blocks."""

    #: Header, all blocks, and the block that begins with the ``YIELD``.
    header: int
    blocks: frozenset[int]
    place: int
    #: Blocks to which threads leave the loop, and blocks outside of it whose branches may pass it by.
    exits: frozenset[int]
    branches: frozenset[int]
    #: Blocks behind the loop, up to other such loops.
    behind: frozenset[int]


class _LoopThreads:
    """The threads of a chunk at one loop: a mask of those that take part in its barrier, and masks of warps."""

    def __init__(self, loop: YieldingLoop, shape: tuple[int, ...]) -> None:
        self.loop, warps = loop, (shape[0], warp_count(shape[1]))
        self.participants = np.zeros(shape, bool)
        #: Warps of which threads have left the loop, and those in which others have yielded since.
        self.left, self.yielded = np.zeros(warps, bool), np.zeros(warps, bool)


class YieldedWarps:
    """The threads of a chunk of a shape (blocks, threads) at each loop that yields."""

    def __init__(self, loops: Sequence[YieldingLoop], shape: tuple[int, ...]) -> None:
        self._all_threads = [_LoopThreads(loop, shape) for loop in loops]
        self._shape = shape

    def select(self, rows: Array) -> "YieldedWarps":
        """Return the part of some blocks of the chunk."""
        part = YieldedWarps([threads.loop for threads in self._all_threads], (len(rows), self._shape[1]))
        for mine, others in zip(part._all_threads, self._all_threads, strict=True):
            mine.participants, mine.left, mine.yielded = (
                others.participants[rows],
                others.left[rows],
                others.yielded[rows],
            )
        return part

    def note_step(self, source: int, index: int, threads: Array) -> None:
        """Note that threads, a mask, go from basic block ``source`` to another: those that enter a loop take part."""
        for place in self._all_threads:
            if index == place.loop.header and source not in place.loop.blocks:
                place.participants |= threads

    def note_run(self, index: int, threads: Array, warps: Array, *, has_waited: bool) -> None:
        """Note that threads, a mask, of warps, a mask (1 or blocks, warps), run a basic block.

        ``has_waited`` is False if they did not wait for others there.
        """
        for place in self._all_threads:
            if index == place.loop.place:
                place.yielded |= place.left & warps
            if index in place.loop.behind:
                place.left |= warps
            if index in place.loop.exits and has_waited:
                place.participants &= ~self._find_threads_of(warps)
            if index in place.loop.branches:
                place.participants |= threads

    def find_threads(self, index: int) -> Array | None:
        """Return a mask (blocks, threads) of those that wait for no others in a basic block; None if all wait."""
        participants = [place.participants for place in self._all_threads if index in place.loop.exits]
        if participants:
            passing: Array = ~np.logical_or.reduce(participants)
            return passing
        yielded = [place.yielded for place in self._all_threads if index in place.loop.behind]
        return self._find_threads_of(np.logical_or.reduce(yielded)) if any(mask.any() for mask in yielded) else None

    def _find_threads_of(self, warps: Array) -> Array:
        """Return the mask of the threads of warps, a mask (1 or blocks, warps)."""
        return spread(warps.repeat(LANES, axis=1)[:, : self._shape[1]], self._shape)
