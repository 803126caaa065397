"""The accesses of one instruction to shared memory: their blocks, threads and offsets, and their faults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..lanes.warps import Array, find_lane_stride
from ..util.errors import MisalignedError, OutOfBoundsError
from ..util.grammar import count_noun
from .address_map import Report


@dataclass(frozen=True, eq=False)
class Places:
    """Places in shared memory that the threads of an instruction access. Each array has one element per access."""

    #: Bytes per access and per unit, and units per block.
    width: int
    unit: int
    units: int
    #: Index in the chunk of the accessed block and of the thread's block; index of the thread in its block.
    owners: Array
    rows: Array
    threads: Array
    #: Offset in the memory of the accessed block.
    offsets: Array
    #: True if these accesses of one block stand for all blocks: all threads are active, with the same offsets.
    is_uniform: bool = False
    #: True if an access is to the memory of another block.
    is_remote: bool = False

    def repeat(self, blocks: int) -> Places:
        """Return the places of all blocks, from those of one block."""
        rows = np.arange(blocks).repeat(len(self.threads))
        threads, offsets = np.tile(self.threads, blocks), np.tile(self.offsets, blocks)
        return replace(self, owners=rows, rows=rows, threads=threads, offsets=offsets)

    @cached_property
    def cells(self) -> Array:
        """Indices of the accessed units in the memory of all blocks, (accesses, units per access)."""
        first = self.owners * self.units + self.offsets // self.unit
        return np.asarray(first[:, None] + np.arange(self.width // self.unit))

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest offset, 0 included."""
        return int(self.offsets.min(initial=0)), int(self.offsets.max(initial=0))

    @cached_property
    def is_aligned(self) -> bool:
        """True if all offsets are multiples of the width."""
        return int(np.bitwise_or.reduce(self.offsets)) & (self.width - 1) == 0

    @cached_property
    def lane_stride(self) -> int | None:
        """The difference between the offsets of adjacent lanes (`find_lane_stride`)."""
        return find_lane_stride(self.offsets)


@lru_cache(maxsize=1 << 9)
def place_in_all_blocks(addresses: bytes, size: int, threads: int, width: int, unit: int, units: int) -> Places:
    """Return the places of all threads; ``addresses``, of ``size`` bytes, are one for all or one for each thread."""
    offsets = np.broadcast_to(np.frombuffer(addresses, f"i{size}").astype(np.int64), threads)
    rows = np.zeros(threads, np.int64)
    return Places(width, unit, units, rows, rows, np.arange(threads), offsets, is_uniform=True)


@dataclass(eq=False)
class SharedAccesses:
    """The accesses of one instruction to shared memory: ``load``, ``store`` or ``atomic``."""

    kind: str
    places: Places
    report: Report

    def report_fault(self, error: Any, access: int, problem: str, *other: Any) -> None:
        """Report a fault of the access with this index; for a race, ``other`` is as in `Report`."""
        places = self.places
        offset = int(places.offsets[access])
        text = f"{self.kind} of {count_noun(places.width, 'byte')} at shared address {offset}{problem}"
        self.report(error, (int(places.rows[access]), int(places.threads[access])), text, offset, *other)

    def check_bounds(self, size: int) -> None:
        """Report the first access outside ``size`` bytes, and the first one that is not aligned to its width."""
        (low, high), offsets, width = self.places.bounds, self.places.offsets, self.places.width
        if low < 0 or high > size - width:
            is_outside = (offsets < 0) | (offsets > size - width)
            self.report_fault(OutOfBoundsError, int(is_outside.argmax()), describe_size(size))
        if not self.places.is_aligned:
            is_misaligned = (offsets & (width - 1)) != 0
            problem = f", which is not a multiple of {width} bytes"
            self.report_fault(MisalignedError, int(is_misaligned.argmax()), problem)


def describe_size(size: int) -> str:
    """Describe the shared memory of a block, at the end of a message about an access out of bounds."""
    return f"; the block has {count_noun(size, 'byte')} of shared memory"
