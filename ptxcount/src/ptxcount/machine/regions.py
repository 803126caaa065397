"""Arrays in memory, and the parts of them that an access touches."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np

from ..counting.transactions import SECTOR
from ..lanes.symbolic_values import Sum, Value
from ..lanes.warps import LANES, Array, find_step, take_by_warp, unsigned
from .global_races import AccessHistory

#: Minimum blocks for which searching a lane stride pays off.
_MIN_BLOCKS = 16
#: Sectors that a miss may fetch: 64 bytes by default, or 128 by a prefetch modifier.
_FETCHES = (2, 4)
#: Selection of threads: a mask, or a slice for all.
Selection = Array | slice


def _count_any(flags: Iterable[Array]) -> int:
    """Count the indices at which any of the arrays is true."""
    return int(np.count_nonzero(reduce(operator.or_, flags, np.zeros(1, bool))))


@dataclass(frozen=True)
class Region:
    """One array: its address, its bytes, its name, and whether it is a constant without a value."""

    base: int
    data: Array
    name: str
    writable: bool
    unset: bool = False
    #: Flags of the read sectors, by sectors per fetch, and of the written sectors; None: not counted.
    read: dict[int, Array] | None = None
    written: Array | None = None
    #: History of accesses, if races are checked.
    watched: AccessHistory | None = None
    #: History of strong writes, and of weak loads that end loops.
    scanned: AccessHistory | None = None
    #: Number of further stores that are checked for races within the store.
    compared: list[int] = field(default_factory=lambda: [0])

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.base + self.data.size

    def units(self, size: int) -> Array:
        """Return the bytes as unsigned integers of ``size`` bytes, without an incomplete last one."""
        return self.data[: self.data.size // size * size].view(unsigned(size))

    def count_fetched(self) -> int:
        """Count the sectors that its reads fetch, if no sector misses twice."""
        fetched = []
        for sectors, flags in (self.read or {}).items():
            padded = np.pad(flags, (0, -flags.size % _FETCHES[-1]))
            fetched.append((padded.view(unsigned(sectors)) != 0).repeat(sectors // _FETCHES[0]))
        return _FETCHES[0] * _count_any(fetched)

    def count_read(self) -> int:
        """Count the distinct sectors that were read."""
        return _count_any((self.read or {}).values())


@dataclass(frozen=True, eq=False)
class ArrayPart:
    """Part of an array that an access touches: the addresses of all threads, or of the threads at ``places``.

    ``chosen`` selects them among the active threads; ``size`` is the unit in bytes.
    """

    region: Region
    address: Value
    size: int
    places: Array | None
    chosen: Selection

    @cached_property
    def unit(self) -> Array:
        """The first unit of each thread."""
        return unit_index(self.address, self.region.base, self.size)

    def touch(self, *, written: bool, fetch: int = 2) -> None:
        """Note the sectors of an access: one per address, because accesses are aligned.

        A read that misses the L2 cache fetches ``fetch`` sectors.
        """
        if self.region.read is None or self.region.written is None:
            return
        if not (written or fetch in self.region.read):
            self.region.read[fetch] = np.zeros_like(self.region.written)
        flags = self.region.written if written else self.region.read[fetch]
        flags[self._find_sectors()] = True

    def _find_sectors(self) -> Array:
        """Find the touched sectors of the array.

        If all blocks begin at the same place of a sector, each is one of the blocks' sectors plus one of the threads'.
        """
        if isinstance(self.address, Sum):
            blocks = self.address.block - self.region.base
            shift = blocks.flat[0] & SECTOR - 1
            if (blocks & SECTOR - 1 == shift).all():
                threads = self.address.thread + shift
                return np.asarray(_sort_distinct(blocks // SECTOR)[:, None] + _sort_distinct(threads // SECTOR))
        return np.asarray(self.unit >> (SECTOR // self.size).bit_length() - 1)

    def gather(self, offset: int) -> Array:
        """Read the element ``offset`` units after each thread's first."""
        units, address = self.region.units(self.size), self.address
        if isinstance(address, Sum) and address.block.size >= _MIN_BLOCKS:
            step = find_step(address.thread)
            if step in (0, self.size):
                leaders = Sum(address.block, address.thread[:, ::LANES])
                return take_by_warp(units, unit_index(leaders, self.region.base, self.size) + offset, bool(step))
        return units.take(self.unit + offset if offset else self.unit)


def _sort_distinct(values: Array) -> Array:
    """Return the distinct values of an array in order, as `numpy.unique`, at less cost."""
    ordered = np.sort(values, axis=None)
    return np.asarray(ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])])


def unit_index(address: Value, base: int, size: int) -> Array:
    """Return the indices of aligned addresses in an array of units of ``size`` bytes."""
    shift = size.bit_length() - 1
    if isinstance(address, Sum):  # only the sum of the parts is a multiple of the size
        first = address.thread.flat[0]
        return np.asarray(((address.block + (first - base)) >> shift) + ((address.thread - first) >> shift))
    return np.asarray((address.view(np.int64) - base) >> shift)
