"""The accesses of one instruction to shared memory: their blocks, threads and offsets, and their faults."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..lanes.warps import Array
from ..util.errors import MisalignedError, OutOfBoundsError
from ..util.grammar import count_noun
from .address_map import Report


@dataclass(eq=False)
class SharedAccesses:
    """The accesses of one instruction to shared memory. Each array has one element per access."""

    #: ``load``, ``store`` or ``atomic``, bytes per access, and the function for faults.
    kind: str
    width: int
    report: Report
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

    def repeat(self, blocks: int) -> SharedAccesses:
        """Return the accesses of all blocks, from those of one block."""
        rows = np.arange(blocks).repeat(len(self.threads))
        threads, offsets = np.tile(self.threads, blocks), np.tile(self.offsets, blocks)
        return replace(self, owners=rows, rows=rows, threads=threads, offsets=offsets)

    def report_fault(self, error: Any, access: int, problem: str, *other: Any) -> None:
        """Report a fault of the access with this index; for a race, ``other`` is as in `Report`."""
        offset = int(self.offsets[access])
        text = f"{self.kind} of {count_noun(self.width, 'byte')} at shared address {offset}{problem}"
        self.report(error, (int(self.rows[access]), int(self.threads[access])), text, offset, *other)

    def check_bounds(self, size: int) -> None:
        """Report the first access outside ``size`` bytes, and the first one that is not aligned to its width."""
        is_outside = (self.offsets < 0) | (self.offsets > size - self.width)
        is_misaligned = (self.offsets & (self.width - 1)) != 0
        if is_outside.any():
            self.report_fault(OutOfBoundsError, int(is_outside.argmax()), describe_size(size))
        if is_misaligned.any():
            problem = f", which is not a multiple of {self.width} bytes"
            self.report_fault(MisalignedError, int(is_misaligned.argmax()), problem)


def describe_size(size: int) -> str:
    """Describe the shared memory of a block, at the end of a message about an access out of bounds."""
    return f"; the block has {count_noun(size, 'byte')} of shared memory"
