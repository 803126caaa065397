"""Order among the lanes of a warp by warp barriers (PTX ISA, ``bar.warp.sync``).

A warp barrier synchronizes only the lanes of its mask. So each lane keeps, for each other lane of its warp, the time of
the last access that is ordered before it: a vector clock (Fidge 1988, Mattern 1989). A barrier joins the clocks of its
lanes.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass

import numpy as np

from ..lanes.warps import LANES, Array, by_warp, spread, warp_count
from ..ptx.program import Immediate, Instruction

#: The mask of a whole warp.
FULL = (1 << LANES) - 1


@dataclass
class Clock:
    """The time of a launch: the number of checked accesses."""

    now: int = 0

    def tick(self) -> int:
        """Count an access, and return its time."""
        self.now += 1
        return self.now


def is_warp_barrier(instruction: Instruction) -> bool:
    """Tell if an instruction is a ``bar.warp.sync``."""
    return instruction.opcode == "bar" and instruction.modifiers[:1] == ("warp",)


def count_ordered_lanes(code: Iterable[Instruction]) -> int:
    """Count the lanes of a warp that barriers can distinguish: 0 without barriers, 1 if all masks are full."""
    masks = [
        instruction.operands[0] if instruction.operands else None
        for instruction in code
        if is_warp_barrier(instruction)
    ]
    is_whole_warps = all(isinstance(mask, Immediate) and int(mask.value) & FULL == FULL for mask in masks)
    return (1 if is_whole_warps else LANES) if masks else 0


def find_missing_lanes(masks: Array, active: Array, threads: int) -> Array:
    """Find the active threads whose mask lacks their own lane; broadcastable to (blocks, threads)."""
    lane = np.arange(threads)[None, :] % LANES
    return np.asarray(active & (masks >> lane.astype(np.uint32) & 1 == 0))


class WarpClocks:
    """Vector clocks of the lanes of a chunk's warps; one row represents all blocks while they are equal."""

    def __init__(self, threads: int, lanes: int, clock: Clock) -> None:
        self.clock = clock
        #: For each warp, (lanes, lanes): accesses of the second lane up to this time are ordered before the first lane.
        self._times = np.zeros((1, warp_count(threads), lanes, lanes), np.int32)

    @property
    def is_by_lane(self) -> bool:
        """True if each lane of a warp has its own clock."""
        return self._times.shape[2] > 1

    def select(self, rows: Array) -> WarpClocks:
        """Select the clocks of some of the blocks."""
        part = copy(self)
        part._times = self._times[rows] if len(self._times) > 1 else self._times.copy()
        return part

    def expand(self, blocks: int) -> None:
        """Keep one row for each block from now on."""
        if len(self._times) < blocks:
            self._times = self._times.repeat(blocks, axis=0)

    def order_block(self, rows: Array | None) -> None:
        """Order all earlier accesses before the blocks in ``rows``, or all blocks."""
        self._times[slice(None) if rows is None else rows] = self.clock.now

    def order_lanes(self, warps: Array, mask: int) -> None:
        """Synchronize the lanes of a mask in some warps, (1 or blocks, warps)."""
        self.expand(len(warps))
        indices = np.nonzero(spread(warps, self._times.shape[:2]))
        if not self.is_by_lane or mask == FULL:
            self._times[indices] = self.clock.now
            return
        lanes = np.flatnonzero(mask >> np.arange(LANES) & 1)
        rows, warps = (index[:, None] for index in indices)
        joined = self._times[rows, warps, lanes].max(axis=1, initial=0)
        joined[:, lanes] = self.clock.now
        self._times[rows, warps, lanes] = joined[:, None, :]

    def find_ordered_times(self, rows: Array, threads: Array) -> Array:
        """Return the times up to which accesses are ordered before some threads, (threads, 1 or 32)."""
        lanes = threads % LANES if self.is_by_lane else 0
        return np.asarray(self._times[rows if len(self._times) > 1 else 0, threads // LANES, lanes])


def find_warps(threads: Array, count: int) -> Array:
    """Find the warps with threads in a mask, (1 or blocks, 1 or ``count``)."""
    return np.asarray(by_warp(threads, count).any(axis=2))
