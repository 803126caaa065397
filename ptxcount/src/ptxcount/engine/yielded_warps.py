"""Threads that wait for others behind a loop with a ``YIELD``, and those that do not (traces of an H200).

Threads that enter the loop together take part in its convergence barrier. Those that leave it wait there until the
others yield to them. Then the barrier is empty: threads that still are in the loop will not wait. Threads that enter
the loop again take part again, and wait when they leave it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..lanes.warps import LANES, Array, spread, warp_count


class YieldingLoop(NamedTuple):
    """A loop with a ``YIELD``, by indices of basic blocks."""

    #: Header, all blocks, and the block that begins with the ``YIELD``.
    header: int
    blocks: frozenset[int]
    yielding_block: int
    #: Blocks to which threads leave the loop, and blocks outside of it whose branches may pass it by.
    exits: frozenset[int]
    branches: frozenset[int]
    #: Blocks behind the loop, up to other such loops.
    behind: frozenset[int]


@dataclass
class _LoopState:
    """The state of a chunk at one loop: a mask of threads, (blocks, threads), and masks of warps, (blocks, warps)."""

    loop: YieldingLoop
    #: Threads that take part in the loop's barrier.
    participants: Array
    #: Warps of which threads have left the loop, and those in which others have yielded since.
    left: Array
    yielded: Array

    def select(self, rows: Array) -> _LoopState:
        """Return the state of some blocks."""
        return _LoopState(self.loop, self.participants[rows], self.left[rows], self.yielded[rows])


class YieldedWarps:
    """The state of a chunk of a shape (blocks, threads) at each loop that yields."""

    def __init__(self, states: list[_LoopState], shape: tuple[int, ...]) -> None:
        self._states, self._shape = states, shape

    @classmethod
    def begin(cls, loops: Iterable[YieldingLoop], shape: tuple[int, ...]) -> YieldedWarps:
        """Return the state at the start: no thread has entered a loop."""
        blocks, threads = shape
        warps = blocks, warp_count(threads)
        states = [
            _LoopState(loop, np.zeros(shape, bool), np.zeros(warps, bool), np.zeros(warps, bool)) for loop in loops
        ]
        return cls(states, shape)

    def select(self, rows: Array) -> YieldedWarps:
        """Return the state of some blocks of the chunk."""
        return YieldedWarps([state.select(rows) for state in self._states], (len(rows), self._shape[1]))

    def note_step(self, source: int, index: int, threads: Array) -> None:
        """Note that threads, a mask, go from basic block ``source`` to another: those that enter a loop take part."""
        for state in self._states:
            if index == state.loop.header and source not in state.loop.blocks:
                state.participants |= threads

    def note_run(self, index: int, threads: Array, warps: Array, *, has_waited: bool) -> None:
        """Note that threads, a mask, of warps, a mask (1 or blocks, warps), run a basic block.

        ``has_waited`` is False if they did not wait for others there.
        """
        for state in self._states:
            if index == state.loop.yielding_block:
                state.yielded |= state.left & warps
            if index in state.loop.behind:
                state.left |= warps
            if index in state.loop.exits and has_waited:
                state.participants &= ~self._find_threads_of(warps)
            if index in state.loop.branches:
                state.participants |= threads

    def find_threads(self, index: int) -> Array | None:
        """Return a mask (blocks, threads) of those that wait for no others in a basic block; None if all wait."""
        participants = [state.participants for state in self._states if index in state.loop.exits]
        if participants:
            passing: Array = ~np.logical_or.reduce(participants)
            return passing
        yielded = [state.yielded for state in self._states if index in state.loop.behind]
        return self._find_threads_of(np.logical_or.reduce(yielded)) if any(mask.any() for mask in yielded) else None

    def _find_threads_of(self, warps: Array) -> Array:
        """Return the mask of the threads of warps, a mask (1 or blocks, warps)."""
        return spread(warps.repeat(LANES, axis=1)[:, : self._shape[1]], self._shape)
