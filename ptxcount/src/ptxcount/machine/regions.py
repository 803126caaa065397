"""Arrays in memory, and the parts of them that an access touches."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np

from ..counting.transactions import SECTOR
from ..lanes.symbolic_values import Sum, Value
from ..lanes.warps import LANES, Array, find_lane_stride, take_by_warp, unsigned
from .global_races import AccessHistory

#: Minimum number of blocks for which `find_lane_stride` saves time.
_MIN_BLOCKS = 16
#: Sectors that an L2 miss fetches: 64 bytes by default, or 128 bytes with a prefetch modifier.
_FETCHES = (2, 4)
#: Selection of threads: a mask, or a slice for all.
Selection = Array | slice


def _count_any(flags: Iterable[Array]) -> int:
    """Count the indices at which any of the arrays is true."""
    return int(np.count_nonzero(reduce(operator.or_, flags, np.zeros(1, bool))))


@dataclass(frozen=True)
class Region:
    """Array in memory: address, bytes and name. ``unset``: a constant without a value, so an access is a fault."""

    base: int
    data: Array
    name: str
    writable: bool
    unset: bool = False
    #: Masks of the read sectors, by sectors per L2 miss; None: not counted.
    read: dict[int, Array] | None = None
    #: Mask of the written sectors; None: not counted.
    written: Array | None = None
    #: History of accesses, if races are checked.
    watched: AccessHistory | None = None
    #: History of strong writes and of weak loads that end loops, if races between them are checked.
    scanned: AccessHistory | None = None
    #: Number of stores whose threads are still to be compared with each other; a list, because it changes.
    compared: list[int] = field(default_factory=lambda: [0])

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.base + self.data.size

    def view_elements(self, size: int) -> Array:
        """Return the bytes as elements of ``size`` bytes (`unsigned`), without an incomplete last one."""
        return self.data[: self.data.size // size * size].view(unsigned(size))

    def count_fetched(self) -> int:
        """Count the sectors that L2 misses of the array's reads fetch, if no sector misses twice."""
        fetched = []  # masks of fetched 64-byte segments
        for sectors, flags in (self.read or {}).items():
            padded = np.pad(flags, (0, -flags.size % _FETCHES[-1]))
            is_fetched = padded.view(unsigned(sectors)) != 0  # the flags of one fetch are read as one word
            fetched.append(is_fetched.repeat(sectors // _FETCHES[0]))
        return _FETCHES[0] * _count_any(fetched)

    def count_read(self) -> int:
        """Count the distinct sectors that were read."""
        return _count_any((self.read or {}).values())


@dataclass(frozen=True, eq=False)
class ArrayPart:
    """Threads of an access that touch one array.

    ``address`` has the addresses of these threads. ``places`` has their indices in the shape that `find_parts` returns,
    which may be one row for all blocks; None: all threads. ``chosen`` selects these threads among the active ones.
    ``size`` is the size of an element in bytes.
    """

    region: Region
    address: Value
    size: int
    places: Array | None
    chosen: Selection

    @cached_property
    def first_index(self) -> Array:
        """Index of the first element that each thread accesses."""
        return find_element_index(self.address, self.region.base, self.size)

    def mark_sectors(self, *, written: bool, fetch: int = 2) -> None:
        """Mark the sectors that an access reads or writes. Accesses are aligned, so each address is in one sector.

        ``fetch`` is the number of sectors that a read fetches on an L2 miss. Reads are marked separately for each
        number.
        """
        if self.region.read is None or self.region.written is None:
            return
        if not (written or fetch in self.region.read):
            self.region.read[fetch] = np.zeros_like(self.region.written)
        flags = self.region.written if written else self.region.read[fetch]
        flags[self._find_sectors()] = True

    def _find_sectors(self) -> Array:
        """Return the indices of the touched sectors of the array.

        If the blocks' parts of a `Sum` have the same offset in a sector, each index is a block's plus a thread's.
        """
        if isinstance(self.address, Sum):
            blocks = self.address.block - self.region.base
            shift = blocks.flat[0] & SECTOR - 1
            if (blocks & SECTOR - 1 == shift).all():
                threads = self.address.thread + shift
                return np.asarray(_sort_distinct(blocks // SECTOR)[:, None] + _sort_distinct(threads // SECTOR))
        return np.asarray(self.first_index >> (SECTOR // self.size).bit_length() - 1)

    def gather(self, offset: int) -> Array:
        """Return one element per thread: the one that is ``offset`` elements behind the thread's first."""
        elements, address = self.region.view_elements(self.size), self.address
        if isinstance(address, Sum) and address.block.size >= _MIN_BLOCKS:
            stride = find_lane_stride(address.thread)
            if stride in (0, self.size):
                leaders = Sum(address.block, address.thread[:, ::LANES])
                index = find_element_index(leaders, self.region.base, self.size) + offset
                return take_by_warp(elements, index, adjacent=bool(stride))
        return elements.take(self.first_index + offset if offset else self.first_index)


def _sort_distinct(values: Array) -> Array:
    """Return the distinct values of an array in order: a faster `numpy.unique`."""
    ordered = np.sort(values, axis=None)
    return np.asarray(ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])])


def find_element_index(address: Value, base: int, size: int) -> Array:
    """Return the element index of each aligned address in an array at ``base`` with elements of ``size`` bytes."""
    shift = size.bit_length() - 1
    if isinstance(address, Sum):  # block and thread alone need not be multiples of the size
        first = address.thread.flat[0]
        return np.asarray(((address.block + (first - base)) >> shift) + ((address.thread - first) >> shift))
    return np.asarray((address.view(np.int64) - base) >> shift)
