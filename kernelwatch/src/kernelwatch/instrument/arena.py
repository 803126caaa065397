"""One allocation for the buffers of all large jobs, so that a time does not depend on what was measured before.

The time of strided writes depends on which memory they hit: read-coalesced transposes differed by up to 5.7 % on an
H200 with the place of their buffers (docs/evidence/times.md, "Where buffers lie"). In one allocation, made before any
job's buffers, those of a job always lie in the same place.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from kernelwatch.instrument import device

#: Bytes: the suite's largest job needs 5.2 GB.
SIZE = 6 << 30

#: Bytes of a page of large allocations: buffers begin where they would in allocations of their own.
_PAGE = 2 << 20


class Piece(NamedTuple):
    """A part of the arena, used as PyCUDA's allocations are."""

    address: int

    def __int__(self) -> int:
        return self.address

    def free(self) -> None:
        """Do nothing: the arena stays."""


class Pool:
    """One allocation of `size` bytes in the context that lasts, which makes room when it must; none of 0 bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._pool: Any = device.allocate(size)[0] if size else None

    def forget(self) -> bool:
        """Give the memory back, for good; return whether there was any."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.free()
        return pool is not None


class Arena(Pool):
    """Gives memory to one job at a time.

    A device with less than twice as many bytes free has no arena: each job then allocates its own memory.
    """

    def __init__(self, size: int = SIZE) -> None:
        free, _total = device.cuda.mem_get_info()
        super().__init__(size if free >= 2 * size else 0)

    def allocate(self, *sizes: int) -> list[Any]:
        """Return memory of each of these sizes, in bytes. Errors as `device.allocate`."""
        *starts, end = itertools.accumulate((-(-size // _PAGE) * _PAGE for size in sizes), initial=0)
        if self._pool is None or end > self._size:
            return device.allocate(*sizes)
        return [Piece(int(self._pool) + start) for start in starts]
