"""Arrivals of threads at barriers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import numpy as np

from ..lanes.warps import Array

#: Number that stands for the barrier of a cluster.
CLUSTER = -1
#: Numbers that stand for the barriers of ``bar.warp.sync`` and ``elect.sync``: above all numbers of block barriers.
WARP, ELECT = 1 << 32, 1 << 33
#: Count that stands for all threads of a block.
ALL = -1


class BarrierKey(NamedTuple):
    """A barrier of the blocks, clusters or warps of a chunk."""

    number: int
    #: Count of expected threads; for a warp barrier, the mask of expected lanes.
    expected: int

    @property
    def is_cluster(self) -> bool:
        """True for the barrier of a cluster."""
        return self.number == CLUSTER

    @property
    def is_warp(self) -> bool:
        """True for a barrier of a warp."""
        return self.number in (WARP, ELECT)

    @property
    def is_whole_block(self) -> bool:
        """True for a barrier of a block without a number of threads: it waits for all of them."""
        return self.expected == ALL and not self.is_cluster


class BarrierArrival(NamedTuple):
    """Threads that have arrived at a barrier."""

    key: BarrierKey
    #: Mask of the threads, broadcastable to (blocks, threads).
    threads: Array
    #: Index of the basic block at whose end they wait; None if they arrive without waiting.
    stopped_at: int | None

    def describe(self) -> str:
        """Return the text of a deadlock at the barrier."""
        expected = "all threads" if self.key.expected == ALL else f"{self.key.expected} threads"
        return f"it waits at barrier {self.key.number} for {expected}, but some never arrive"


def select_waiting(arrivals: Iterable[BarrierArrival]) -> list[tuple[int, BarrierArrival]]:
    """Return pairs of a basic block's index and an arrival that waits at the end of this block."""
    return [(arrival.stopped_at, arrival) for arrival in arrivals if arrival.stopped_at is not None]


def union(masks: Iterable[Array]) -> Array:
    """Return the union of masks, at least one."""
    return np.asarray(reduce(np.logical_or, masks))
