"""Arrays in a synthetic address space, far apart, so that no stray pointer lands in another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ..counting.transactions import SECTOR
from ..lanes.symbolic_values import Sum, Value, dense
from ..lanes.warps import Array, occupancy, spread, unsigned
from ..util.errors import (
    GlobalRaceError,
    LaunchError,
    MisalignedError,
    OutOfBoundsError,
    ReadOnlyError,
    UnsetVariableError,
)
from .global_races import Watched

ALIGNMENT = 256
GUARD = 1 << 32
#: Stores to an array that is only stored to, of which the threads are compared with each other.
_COMPARED = 16
#: Where global and constant memory and parameters begin: far apart, so that an address of one is none of another.
FIRST_ADDRESS = 1 << 40
FIRST_CONSTANT = 1 << 50
FIRST_PARAMETER = 1 << 52
#: The sectors that a read may fetch at once: 64 bytes, which is the default, or as its instruction says.
FETCHES = (2, 4)
#: Some of a list: a mask, or all.
Chosen = Array | slice
#: Reports a fault: error class, position (block, thread) in the chunk, text, address. Races alone may be survived.
Report = Callable[..., None]


@dataclass(frozen=True)
class Region:
    """One array: its first address, its bytes, what to call it, and whether it is a constant that nobody set."""

    base: int
    data: Array
    name: str
    writable: bool
    unset: bool = False
    #: By which of `FETCHES` each sector was read, as bits, and whether it was written; nothing where nobody asks.
    read: Array | None = None
    written: Array | None = None
    #: Who was where, if races are looked for.
    watched: Watched | None = None
    #: Of how many stores the threads are still compared with each other.
    compared: list[int] = field(default_factory=lambda: [0])

    @property
    def end(self) -> int:
        """The address behind the last byte."""
        return self.base + self.data.size

    def units(self, size: int) -> Array:
        """The bytes as unsigned integers of ``size`` bytes; what does not fill one at the end is left out."""
        return self.data[: self.data.size // size * size].view(unsigned(size))

    def touch(self, index: Array, size: int, address: Value | None = None, *, written: bool, fetch: int = 2) -> None:
        """Note the sectors of an access to units of ``size`` bytes: one for each place, as accesses are aligned.

        A read that misses the L2 cache fetches so many sectors at once.

        Of neighbours, known by their address, one a sector and the last will do.
        """
        touched = self.written if written else self.read
        if touched is not None:
            if isinstance(address, Sum) and ((address.thread[0, 1:] - address.thread[0, :-1]) == size).all():
                index = np.concatenate([index[:, :: SECTOR // size], index[:, -1:]], axis=1)
            touched[index >> (SECTOR // size).bit_length() - 1] |= 1 << FETCHES.index(fetch)

    def count_fetched(self) -> int:
        """Count the sectors that its reads fetch, if none of them misses twice."""
        if self.read is None:
            return 0
        flags = np.pad(self.read, (0, -self.read.size % FETCHES[-1]))
        fetched = np.zeros(flags.size, bool)
        for bit, sectors in enumerate(FETCHES):
            fetched |= (flags >> bit & 1).reshape(-1, sectors).any(axis=1).repeat(sectors)
        return int(np.count_nonzero(fetched))


class Part(NamedTuple):
    """What an access reaches of an array: the first unit of each thread, all threads or those at places of a shape.

    ``chosen`` says which of the active threads they are.
    """

    region: Region
    unit: Array
    places: Array | None
    chosen: Chosen


def _low_high(address: Value) -> tuple[int, int]:
    if isinstance(address, Sum):
        return address.bounds()
    if address.size == 1:
        return (int(address.item()),) * 2
    return (int(address.min()), int(address.max())) if address.size else (FIRST_ADDRESS, FIRST_ADDRESS)


def aligned(address: Value, width: int) -> bool:
    """Whether all addresses are multiples of the width, a power of two."""
    if isinstance(address, Sum):
        first = address.thread.flat[0]
        return aligned(address.block + first, width) and aligned(address.thread - first, width)
    return not (address & address.dtype.type(width - 1)).any()


def unit_index(address: Value, base: int, size: int) -> Array:
    """The places of aligned addresses in an array of units of ``size`` bytes."""
    shift = size.bit_length() - 1
    if isinstance(address, Sum):  # only together are the two parts multiples of the size
        first = address.thread.flat[0]
        return np.asarray(((address.block + (first - base)) >> shift) + ((address.thread - first) >> shift))
    return np.asarray((address.view(np.int64) - base) >> shift)


class ArrayMemory:
    """The arrays that a launch can reach, from an address on; with ``distinct`` also which sectors it touched."""

    def __init__(self, first: int = FIRST_ADDRESS, *, distinct: bool = False) -> None:
        self._regions: list[Region] = []
        self._distinct = distinct
        self._next = first

    def add(self, array: Array, name: str, *, unset: bool = False) -> int:
        """Map an array, C-contiguous and modified in place unless it is read-only; the address of its first byte.

        Errors call it by its name. With ``unset`` a read is a fault. Raises `LaunchError` if its bytes do not lie in
        memory as a kernel would see them.
        """
        if not array.flags.c_contiguous or not array.dtype.isnative or array.dtype.hasobject:
            raise LaunchError(f"{name}: the array must hold numbers in the byte order of this machine")
        read, written = (np.zeros(-(-array.nbytes // SECTOR), np.uint8) if self._distinct else None for _ in range(2))
        region = Region(self._next, array.reshape(-1).view(np.uint8), name, array.flags.writeable, unset, read, written)
        self._regions.append(region)
        self._next = (region.end + GUARD + ALIGNMENT) // ALIGNMENT * ALIGNMENT
        return region.base

    def arrays(self) -> list[tuple[int, int, str]]:
        """The first address, the bytes and the name of each."""
        return [(region.base, region.data.size, region.name) for region in self._regions]

    def distinct_sectors(self) -> tuple[int, int]:
        """How many different sectors were read, and written."""
        read = [np.count_nonzero(each.read) for each in self._regions if each.read is not None]
        written = [np.count_nonzero(each.written) for each in self._regions if each.written is not None]
        return int(sum(read)), int(sum(written))

    def fetched_sectors(self) -> int:
        """How many sectors DRAM gives at least where a miss fetches 64 bytes, or what its instruction says."""
        return sum(region.count_fetched() for region in self._regions)

    def load(
        self, address: Value, size: int, count: int, active: Array, report: Report, *, fetch: int = 2
    ) -> list[Array]:
        """Read ``count`` adjacent elements of ``size`` bytes for each active thread, from its address on.

        A miss of the L2 cache fetches so many sectors. Gives unsigned integers, one array for each element. Faults go
        to ``report``.
        """
        shape, reached = self._reach(address, size, count, active, report, fetch=fetch)
        results = [np.zeros(shape, unsigned(size)) for _ in range(count)]
        for part in reached:
            self._watch(part, size, count, shape, report)
            values = [part.region.units(size)[part.unit + k if k else part.unit] for k in range(count)]
            if part.places is None:
                return values
            for result, value in zip(results, values, strict=True):
                result.reshape(-1)[part.places] = value
        return results

    def watch(self, read: set[str] | None, stored: set[str] | None, *, strict: bool) -> bool:
        """Look for races in the arrays that are stored to, by their names, or in all; whether there are any."""
        for place, region in enumerate(self._regions):
            if region.writable and (stored is None or region.name in stored):
                both = strict or read is None or region.name in read
                watched = Watched(region.data, region.name) if both else None
                self._regions[place] = replace(region, watched=watched, compared=[0 if both else _COMPARED])
        return any(region.watched or region.compared[0] for region in self._regions)

    def _watch(
        self, part: Part, size: int, count: int, shape: tuple[int, ...], report: Any, values: Sequence[Array] = ()
    ) -> None:
        """Look whether an access races, if somebody asks, and it orders nothing."""
        watched = part.region.watched
        if watched is None or not getattr(report, "plain", False):
            return
        chunk = report.chunk
        full = part.unit
        if part.places is not None:  # perhaps one row for all blocks
            full = np.full(shape, -1, np.int64)
            full.reshape(-1)[part.places] = part.unit
        full = spread(full, chunk.shape).reshape(-1)
        places = np.flatnonzero(full >= 0)
        index, meeting, width = full[places] // count, chunk.meeting(places), size * count
        if values:
            given = [spread(value, chunk.shape).reshape(-1)[places] for value in values]
            found = watched.store(index, width, given, part.region.units(size), meeting)
        else:
            found = watched.load(index, width, meeting)
        if found is not None:
            position = divmod(int(places[found[0]]), chunk.shape[1])
            report(GlobalRaceError, position, found[1], part.region.base + int(index[found[0]]) * width)

    def store(self, address: Value, size: int, values: list[Array], active: Array, report: Report) -> None:
        """Write adjacent elements for each active thread; as `load`, with an array of ``values`` for each element."""
        others = [value.shape for value in values]
        shape, reached = self._reach(address, size, len(values), active, report, *others, written=True)
        for part in reached:
            self._watch(part, size, len(values), shape, report, values)
            units = part.region.units(size)
            for k, value in enumerate(values):
                place = part.unit + k if k else part.unit
                mine = value if part.places is None else spread(value, shape).reshape(-1)[part.places]
                if mine.size > 1 and mine.shape != place.shape:
                    place = spread(place, np.broadcast_shapes(place.shape, mine.shape))
                units[place] = mine
                if part.region.compared[0] and mine.size > 1:
                    self._compare(part, place, units[place] != mine, size, shape, report)

    @staticmethod
    def _compare(part: Part, place: Array, lost: Array, size: int, shape: tuple[int, ...], report: Report) -> None:
        """Report that of the threads of a store one did not find what it stored."""
        region = part.region
        region.compared[0] -= 1
        if getattr(report, "plain", False) and lost.any():
            first = int(lost.argmax())
            byte = int(spread(place, lost.shape).flat[first]) * size
            text = f"store of {size} bytes at byte {byte} of {region.name}, which another thread writes as well"
            at = divmod(first, lost.shape[1]) if part.places is None else divmod(int(part.places[first]), shape[1])
            report(GlobalRaceError, at, text, region.base + byte)

    def atomic(
        self, address: Value, size: int, active: Array, report: Report, shape: tuple[int, int]
    ) -> list[tuple[Array, Array, Chosen]]:
        """Check an atomic access of a chunk of (blocks, threads).

        For each array that it reaches: its units of ``size`` bytes, the places, and for which of the active threads.
        """
        found = []
        for part in self._reach(address, size, 1, active, report, shape, written=True)[1]:
            part.region.touch(part.unit, size, written=False)
            index = part.unit if part.places is not None else spread(part.unit, shape).reshape(-1)
            found.append((part.region.units(size), index, part.chosen))
        return found

    def _reach(
        self, address: Value, size: int, count: int, active: Array, report: Report, *others: tuple[int, ...],
        written: bool = False, fetch: int = 2,
    ) -> tuple[tuple[int, ...], list[Part]]:  # fmt: skip
        """Check an access, and note its sectors: the shape that places are in, and what it reaches of each array."""
        low, high, width = *_low_high(address), size * count
        region = self._around(low, high, width) if active.size == 1 else None
        shape: tuple[int, ...] = (1, 1)
        if region is not None and (low % width == 0 if low == high else aligned(address, width)):
            found = [Part(region, unit_index(address, region.base, size), None, np.s_[:])]
        else:
            whole = dense(address).view(np.int64)
            shape = np.broadcast_shapes(whole.shape, active.shape, *others)
            places = occupancy(active, shape).places
            picked = spread(whole, shape).reshape(-1)[places]

            def at(error: Any, place: int, text: str) -> None:
                report(error, divmod(int(places[place]), shape[1]), text, int(picked[place]))

            found = [Part(region, unit_index(picked[chosen], region.base, size), places[chosen], chosen)
                     for region, chosen in self._by_region(picked, width, at)]  # fmt: skip
        for region, index, mine, _ in found:
            first = (0, 0) if mine is None else divmod(int(mine[0]), shape[1])
            if region.unset:
                text = f"the source gives {region.name} no value; give it one, as one of the launch's variables"
                report(UnsetVariableError, first, text, region.base)
            if written and not region.writable:
                byte = int(index.flat[0]) * size
                text = f"byte {byte} of {region.name} of {region.data.size} bytes"
                report(ReadOnlyError, first, text, region.base + byte)
            region.touch(index, size, address if mine is None else None, written=written, fetch=fetch)
        return shape, found

    def _around(self, low: int, high: int, width: int) -> Region | None:
        """The array that holds accesses from an address up to another."""
        return next((each for each in self._regions if each.base <= low and high + width <= each.end), None)

    def _by_region(
        self, addresses: Array, width: int, report: Callable[[Any, int, str], None]
    ) -> list[tuple[Region, Chosen]]:
        """The arrays that some addresses lie in, and which of the addresses lie in each."""
        region = self._around(*_low_high(addresses), width)
        if region is not None and aligned(addresses, width):
            return [(region, np.s_[:])]
        bases, ends = np.array([(each.base, each.end) for each in self._regions] or [(0, 0)], np.int64).T
        owner = np.maximum(np.searchsorted(bases, addresses, side="right") - 1, 0)
        outside = (addresses < bases[owner]) | (addresses > ends[owner] - width)
        crooked = (addresses & (width - 1)) != 0
        for wrong, error in ((outside, OutOfBoundsError), (crooked, MisalignedError)):
            if wrong.any():
                first = int(wrong.argmax())
                where = int(addresses[first])
                stray = error is OutOfBoundsError
                text = self._stray(where, width) if stray else f"address {where:#x} is not a multiple of {width} bytes"
                report(error, first, text)
        return [(self._regions[index], owner == index) for index in np.unique(owner)]

    def _stray(self, address: int, width: int) -> str:
        """Where a stray access lies, seen from the nearest array."""
        where = f"{width} bytes at {address:#x}"
        if not self._regions:
            return where
        near = min(self._regions, key=lambda region: max(region.base - address, address - region.end))
        size = f"{near.name} of {near.data.size} bytes"
        if address < near.base:
            return f"{where}, {near.base - address} bytes before {size}"
        return f"{where}, which is byte {address - near.base} of {size}"
