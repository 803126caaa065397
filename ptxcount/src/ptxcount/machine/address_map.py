"""Arrays in an address space of ptxcount, far apart, so that an access slightly out of bounds hits no other array."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..counting.transactions import SECTOR
from ..lanes.symbolic_values import Sum, Value, dense
from ..lanes.warps import Array, find_active_lanes, spread
from ..util.errors import LaunchError, MisalignedError, OutOfBoundsError
from ..util.grammar import count_noun
from .regions import ArrayPart, Region, Selection

ALIGNMENT = 256
GUARD = 1 << 32
#: First addresses of global memory, constant memory and parameters: far apart, so that they never overlap.
FIRST_ADDRESS = 1 << 40
FIRST_CONSTANT = 1 << 50
#: Parameters are below 2**32, because compilers use 32-bit addresses for them; no other memory is in their window.
FIRST_PARAMETER = 1 << 20
PARAMETER_GUARD = 1 << 18
#: Addresses below this come from a null pointer and an index.
_NEAR_NULL = 1 << 16
#: Function that reports a fault, usually a `reporter.Reporter`. Its arguments: the error class, the position (block,
#: thread) in the chunk, the text, the address; for a race, also the source and the thread of the other access.
Report = Callable[..., None]


def _find_bounds(address: Value) -> tuple[int, int]:
    """Return the lowest and the highest address; of no addresses, any bounds."""
    if isinstance(address, Sum):
        return address.bounds()
    if address.size == 1:
        return (int(address.item()),) * 2
    return (int(address.min()), int(address.max())) if address.size else (FIRST_ADDRESS, FIRST_ADDRESS)


def is_aligned(address: Value, width: int) -> bool:
    """Tell if all addresses are multiples of the width, a power of two."""
    if isinstance(address, Sum):
        first = address.thread.flat[0]
        return is_aligned(address.block + first, width) and is_aligned(address.thread - first, width)
    return int(np.bitwise_or.reduce(address, axis=None)) & (width - 1) == 0


class AddressMap:
    """Arrays that a launch can access, at addresses from ``first`` on, at least ``guard`` bytes apart.

    ``distinct``: track the sectors that are read or written.
    """

    def __init__(self, first: int = FIRST_ADDRESS, *, distinct: bool = False, guard: int = GUARD) -> None:
        self._regions: list[Region] = []
        self._distinct = distinct
        self._next, self._guard = first, guard

    def add(self, array: Array, name: str, *, unset: bool = False) -> int:
        """Map a C-contiguous array, and return its address. Stores modify a writable array in place.

        ``name`` is the array's name in errors. ``unset``: an access is a fault. Raises `LaunchError` if the array has
        another byte order than this machine, or holds Python objects.
        """
        if not array.dtype.isnative or array.dtype.hasobject:
            needed = "it must hold numbers in the byte order of this machine; convert it with astype"
            raise LaunchError(f"{name} is an array of {array.dtype}; {needed}")
        region = Region(self._next, array.reshape(-1).view(np.uint8), name, array.flags.writeable, unset)
        if self._distinct:
            region.read, region.written = {}, np.zeros(-(-array.nbytes // SECTOR), bool)
        self._regions.append(region)
        self._next = (region.end + self._guard + ALIGNMENT) // ALIGNMENT * ALIGNMENT
        return region.base

    def arrays(self) -> list[tuple[int, int, str]]:
        """Return address, size in bytes and name of each array."""
        return [(region.base, region.data.size, region.name) for region in self._regions]

    def find_parts(
        self, address: Value, size: int, width: int, active: Array, report: Report, shapes: Sequence[tuple[int, ...]],
        kind: str,
    ) -> tuple[tuple[int, ...], list[ArrayPart]]:  # fmt: skip
        """Split an access by array: ``width`` bytes per active thread, in elements of ``size``; report bad addresses.

        Return the broadcast shape of addresses, mask and ``shapes``, and a part for each array. The ``places`` of a
        part are indices in this shape. If a mask of one element has all threads, and all make aligned accesses to one
        array, ``places`` may be None, and the shape (1, 1).
        """
        low, high = _find_bounds(address)
        region = self._find_region(low, high, width) if active.size == 1 else None
        if region is not None and (low % width == 0 if low == high else is_aligned(address, width)):
            return (1, 1), [ArrayPart(region, address, size, places=None, chosen=np.s_[:])]
        addresses = dense(address)  # in registers of 32 or 64 bits
        addresses = addresses.view(np.int64) if addresses.itemsize == 8 else addresses.astype(np.int64)
        shape = np.broadcast_shapes(addresses.shape, active.shape, *shapes)
        places = find_active_lanes(active, shape).places
        if not places.size:
            return shape, []
        active_addresses = spread(addresses, shape).reshape(-1).take(places)

        def report_at(error: Any, index: int, text: str) -> None:
            position = divmod(int(places[index]), shape[1])
            report(error, position, f"{kind} of {text}", int(active_addresses[index]))

        return shape, [
            ArrayPart(region, active_addresses[chosen], size, places[chosen], chosen)
            for region, chosen in self._split_by_region(active_addresses, width, report_at)
        ]

    def _find_region(self, low: int, high: int, width: int) -> Region | None:
        return next((region for region in self._regions if region.base <= low and high + width <= region.end), None)

    def _split_by_region(
        self, addresses: Array, width: int, report: Callable[[Any, int, str], None]
    ) -> list[tuple[Region, Selection]]:
        """Return each accessed array with the selection of its addresses; report bad ones, at most one of each kind."""
        region = self._find_region(*_find_bounds(addresses), width)
        if region is not None and is_aligned(addresses, width):
            return [(region, np.s_[:])]
        bases, ends = np.array([(region.base, region.end) for region in self._regions] or [(0, 0)], np.int64).T
        owner = np.maximum(np.searchsorted(bases, addresses, side="right") - 1, 0)
        is_outside = (addresses < bases[owner]) | (addresses > ends[owner] - width)
        if is_outside.any():
            first = int(is_outside.argmax())
            report(OutOfBoundsError, first, self._describe_stray(int(addresses[first]), width))
        is_misaligned = (addresses & (width - 1)) != 0
        if is_misaligned.any():
            first = int(is_misaligned.argmax())
            text = f"{width} bytes at address {int(addresses[first]):#x}, which is not a multiple of {width} bytes"
            report(MisalignedError, first, text)
        return [(self._regions[index], owner == index) for index in np.unique(owner)]

    def _describe_stray(self, address: int, width: int) -> str:
        access = f"{count_noun(width, 'byte')} at {address:#x}"
        if abs(address) < _NEAR_NULL:
            return f"{access}: a null pointer" + (f" {address:+d} bytes" if address else "")
        if not self._regions:
            return access
        nearest = min(self._regions, key=lambda region: max(region.base - address, address - region.end))
        array = f"{nearest.name} of {count_noun(nearest.data.size, 'byte')}"
        if address < nearest.base:
            return f"{access}, {count_noun(nearest.base - address, 'byte')} before {array}"
        byte = address - nearest.base
        if byte > 2 * nearest.data.size and len(self._regions) > 1:  # the index may be meant for another array
            array = re.sub(r"^(\S+) \(", r"'\1' (", array)  # quote a name that may read as a word, such as "in"
            distance = count_noun(address - nearest.end, "byte")
            return f"{access}, in no array: {distance} after the end of the nearest array below, {array}"
        return f"{access}, which is byte {byte} of {array}"
