"""Arrays in memory, and the parts of them that an access touches."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from ..counting.transactions import SECTOR
from ..lanes.symbolic_values import Sum, Value
from ..lanes.warps import LANES, Array, find_lane_stride, take_by_warp, unsigned
from .global_races import AccessHistory
from .stale_reads import WrittenBytes

#: Minimum number of blocks for which `find_lane_stride` saves time.
_MIN_BLOCKS = 16
#: Sectors that an L2 miss fetches: 64 bytes by default, or 128 bytes with a prefetch modifier.
_FETCHES = (2, 4)
#: Selection of threads: a mask, or the slice ``[:]`` for all.
Selection = Array | slice


def _count_in_union(masks: Iterable[Array]) -> int:
    return int(np.count_nonzero(reduce(operator.or_, masks, np.zeros(1, bool))))


@dataclass(eq=False)
class Region:
    """Array in memory: its address, its bytes, its name, and the tracking of its accesses."""

    base: int
    data: Array
    name: str
    writable: bool
    #: True for a constant without a value: an access is a fault.
    unset: bool = False
    #: Masks of the read sectors, by the number of sectors that an L2 miss fetches; None: not counted.
    read: dict[int, Array] | None = None
    #: Mask of the written sectors; None: not counted.
    written: Array | None = None
    #: History of weak loads and stores; None: their races are not checked.
    watched: AccessHistory | None = None
    #: History of strong writes and of weak loads that end loops; None: races between them are not checked.
    scanned: AccessHistory | None = None
    #: The bytes that the launch has written; None: no non-coherent load reaches the array.
    written_bytes: WrittenBytes | None = None
    #: Number of coming stores that are checked for threads that overwrite each other's values.
    stores_to_compare: int = 0

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.base + self.data.size

    def view_elements(self, size: int) -> Array:
        """Return the bytes as elements of ``size`` bytes (`unsigned`), without an incomplete last one."""
        return self.data[: self.data.size // size * size].view(unsigned(size))

    def count_fetched(self) -> int:
        """Count the sectors that L2 fetches from DRAM for reads of the array, if it fetches none twice."""
        fetched = []  # masks of fetched 64-byte segments
        for sectors, flags in (self.read or {}).items():
            padded = np.pad(flags, (0, -flags.size % _FETCHES[-1]))
            is_fetched = padded.view(unsigned(sectors)) != 0  # the flags of one fetch are read as one word
            fetched.append(is_fetched.repeat(sectors // _FETCHES[0]))
        return _FETCHES[0] * _count_in_union(fetched)

    def count_read(self) -> int:
        """Count the distinct sectors that were read."""
        return _count_in_union((self.read or {}).values())


@dataclass(frozen=True, eq=False)
class ArrayPart:
    """The part of an access that touches one array."""

    region: Region
    #: Address of each thread that accesses the array.
    address: Value
    #: Bytes of an element.
    size: int
    #: Indices of these threads in the shape that `AddressMap.find_parts` returns; None: all threads.
    places: Array | None
    #: Selection of these threads among the active ones.
    chosen: Selection

    @cached_property
    def first_index(self) -> Array:
        """Index of the first element that each thread accesses."""
        return find_element_index(self.address, self.region.base, self.size)

    def mark_sectors(self, *, written: bool, fetch: int = 2) -> None:
        """Mark the sectors that a write, or else a read, touches. An access is aligned, so it lies within one sector.

        ``fetch`` is the number of sectors that a read fetches on an L2 miss; each has its own mask, and 0 marks none.
        """
        read_masks, mask = self.region.read, self.region.written
        if read_masks is None or mask is None or not fetch:
            return
        if not written:
            if fetch not in read_masks:
                read_masks[fetch] = np.zeros_like(mask)
            mask = read_masks[fetch]
        mask[self._find_sectors()] = True

    def _find_sectors(self) -> Array:
        """Return the indices of the touched sectors of the array.

        If the block parts of a `Sum` have the same offset in a sector, sectors are sums, too: only distinct parts are
        added.
        """
        if isinstance(self.address, Sum):
            blocks = self.address.block - self.region.base
            shift = blocks.flat[0] & SECTOR - 1
            if (blocks & SECTOR - 1 == shift).all():
                threads = self.address.thread + shift
                return np.asarray(_sort_distinct(blocks // SECTOR)[:, None] + _sort_distinct(threads // SECTOR))
        elements_per_sector = SECTOR // self.size
        return np.asarray(self.first_index >> elements_per_sector.bit_length() - 1)

    def gather(self, offset: int) -> Array:
        """Read one element for each thread, ``offset`` elements after the thread's first."""
        elements, address = self.region.view_elements(self.size), self.address
        if isinstance(address, Sum) and address.block.size >= _MIN_BLOCKS:
            stride = find_lane_stride(address.thread)
            if stride in (0, self.size):  # the lanes of a warp read one element, or adjacent ones: index only lane 0
                lanes_0 = Sum(address.block, address.thread[:, ::LANES])
                index = find_element_index(lanes_0, self.region.base, self.size) + offset
                return take_by_warp(elements, index, adjacent=stride == self.size)
        return elements.take(self.first_index + offset if offset else self.first_index)


def _sort_distinct(values: Array) -> Array:
    """Return the distinct values of an array in order: a faster `numpy.unique`."""
    ordered = np.sort(values, axis=None)
    return np.asarray(ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])])


def find_element_index(address: Value, base: int, size: int) -> Array:
    """Return the element index of each aligned address in an array at ``base`` with elements of ``size`` bytes."""
    shift = size.bit_length() - 1
    if isinstance(address, Sum):  # neither part alone need be a multiple of the size: move thread 0's to the blocks
        first = address.thread.flat[0]
        return np.asarray(((address.block + (first - base)) >> shift) + ((address.thread - first) >> shift))
    return np.asarray((address.view(np.int64) - base) >> shift)
