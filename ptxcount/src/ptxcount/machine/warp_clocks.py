"""Order of accesses by ``bar.warp.sync`` (PTX ISA), and by flags in shared memory.

``bar.warp.sync`` orders only the lanes of its mask. So each lane has a vector clock (Fidge 1988, Mattern 1989); if all
masks are whole, one clock serves the warp. The clock of a lane has a time for each other lane: accesses of the other
lane up to this time are ordered before the lane. A barrier joins the clocks of its lanes. A strong load that reads a
flag is ordered after all accesses of the block before the write of the flag; so is an atomic, but without acquire
semantics only from the thread's next fence on. For this order, each thread has a single time.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..lanes.warps import LANES, Array, lanes_by_warp, spread, warp_count
from ..ptx.program import Immediate, Instruction
from .polls import is_acquire

#: The mask of a whole warp.
FULL = (1 << LANES) - 1
#: Attributes of `WarpClocks` with a row for each block.
_TIMES = ("_times", "_acquired", "_observed")


@dataclass
class Clock:
    """The time of a launch: the number of checked accesses."""

    now: int = 0

    def tick(self) -> int:
        """Count an access, and return its time."""
        self.now += 1
        return self.now


class OrderedTimes(NamedTuple):
    """Times up to which accesses are ordered before some threads."""

    #: Time for accesses of each lane of the thread's warp, (threads, 32); (threads, 1) if all lanes have the same.
    lanes: Array
    #: Time for accesses of all threads of the block, (threads, 1).
    block: Array


def is_warp_barrier(instruction: Instruction) -> bool:
    """Tell if an instruction is a ``bar.warp.sync``."""
    return instruction.opcode == "bar" and instruction.modifiers[:1] == ("warp",)


def count_ordered_lanes(code: Iterable[Instruction]) -> int:
    """Return the clocks per warp: 0 without warp barriers and flags, 32 if a barrier's mask may be partial, else 1.

    A kernel has flags if it has an acquire (`polls.is_acquire`), or a fence and an atomic, outside of global memory.
    """
    instructions = [*code]
    masks = [
        instruction.operands[0] if instruction.operands else None
        for instruction in instructions
        if is_warp_barrier(instruction)
    ]
    has_fence = any(instruction.opcode in ("fence", "membar") for instruction in instructions)
    has_flags = any(
        is_acquire(instruction) or (has_fence and instruction.opcode == "atom")
        for instruction in instructions
        if "global" not in instruction.modifiers
    )
    if not masks:
        return int(has_flags)
    numbers = [mask.value if isinstance(mask, Immediate) else 0 for mask in masks]
    return 1 if all(isinstance(number, int) and number & FULL == FULL for number in numbers) else LANES


class WarpClocks:
    """Vector clocks of the lanes of a chunk's warps; one row represents all blocks while their clocks are equal."""

    def __init__(self, threads: int, lanes: int, clock: Clock) -> None:
        self.clock = clock
        #: Time up to which accesses of the other lane are ordered before the lane: (blocks, warps, lane, other lane).
        self._times = np.zeros((1, warp_count(threads), lanes, lanes), np.int32)
        #: Times up to which all accesses are ordered before a thread, now and after its next fence: (blocks, warps,
        #: lanes).
        self._acquired, self._observed = (np.zeros((1, warp_count(threads), LANES), np.int32) for _ in range(2))

    @property
    def is_by_lane(self) -> bool:
        """True if each lane of a warp has its own clock."""
        return self._times.shape[2] > 1

    def select(self, rows: Array) -> WarpClocks:
        """Return the clocks of the blocks ``rows``."""
        part = copy(self)
        for name in _TIMES:
            times = getattr(self, name)
            setattr(part, name, times[rows] if len(times) > 1 else times.copy())
        return part

    def expand(self, blocks: int) -> None:
        """Keep one row for each block from now on."""
        if len(self._times) < blocks:
            for name in _TIMES:
                setattr(self, name, getattr(self, name).repeat(blocks, axis=0))

    def order_block(self, rows: Array | None) -> None:
        """Order all earlier accesses before the blocks ``rows``; None: before all blocks."""
        self._times[slice(None) if rows is None else rows] = self.clock.now

    def order_lanes(self, warps: Array, mask: int) -> None:
        """Synchronize the lanes in the 32-bit ``mask``, in each warp of the mask ``warps``, (1 or blocks, warps)."""
        self.expand(len(warps))
        indices = np.nonzero(spread(warps, self._times.shape[:2]))
        lanes = np.flatnonzero(mask >> np.arange(LANES) & 1)
        rows, warps = (index[:, None] for index in indices)
        self._acquired[rows, warps, lanes] = self._acquired[rows, warps, lanes].max(axis=1, initial=0, keepdims=True)
        if not self.is_by_lane or mask == FULL:
            self._times[indices] = self.clock.now
            return
        joined = self._times[rows, warps, lanes].max(axis=1, initial=0)
        joined[:, lanes] = self.clock.now
        self._times[rows, warps, lanes] = joined[:, None, :]

    def observe(self, rows: Array, threads: Array, times: Array, *, is_ordering: bool) -> None:
        """Order accesses up to ``times`` before threads that have read values written at these times.

        ``is_ordering``: the order holds from now on; otherwise, from the thread's next fence on.
        """
        place = rows if len(self._times) > 1 else 0, threads // LANES, threads % LANES
        known = self._acquired if is_ordering else self._observed
        known[place] = np.maximum(known[place], times)

    def order_fences(self, threads: Array, count: int) -> None:
        """Execute a fence of the threads in a mask, (1 or blocks, 1 or ``count``): apply what `observe` has kept."""
        self.expand(len(threads))
        is_active = lanes_by_warp(threads, count)
        self._acquired = np.where(is_active, np.maximum(self._acquired, self._observed), self._acquired)

    def find_ordered_times(self, rows: Array, threads: Array) -> OrderedTimes:
        """Return the times up to which accesses are ordered before the threads at (``rows``, ``threads``)."""
        row, warp, lane = rows if len(self._times) > 1 else 0, threads // LANES, threads % LANES
        block = self._acquired[row, warp, lane][:, None]
        times = self._times[row, warp, lane if self.is_by_lane else 0]
        return OrderedTimes(np.maximum(times, block), block)
