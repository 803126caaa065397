"""Arrays in a synthetic address space, far apart, so that no stray pointer lands in another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .errors import GlobalRaceError, LaunchError, MisalignedError, OutOfBoundsError, ReadOnlyError, UnsetVariableError
from .global_races import Watched
from .transactions import SECTOR
from .values import Sum, Value, dense
from .warps import Array, occupancy, spread, unsigned

ALIGNMENT = 256
GUARD = 1 << 32
#: Stores to an array that is only stored to, of which the threads are compared with each other.
_COMPARED = 16
#: Where global and constant memory and parameters begin: far apart, so that an address of one is none of another.
FIRST_ADDRESS = 1 << 40
FIRST_CONSTANT = 1 << 50
FIRST_PARAMETER = 1 << 52
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
    #: Whether each sector was read, and written; nothing where nobody asks.
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

    def touch(self, index: Array, size: int, address: Value | None = None, *, written: bool) -> None:
        """Note the sectors of an access to units of ``size`` bytes: one for each place, as accesses are aligned.

        Of neighbours, known by their address, one a sector and the last will do.
        """
        touched = self.written if written else self.read
        if touched is not None:
            if isinstance(address, Sum) and ((address.thread[0, 1:] - address.thread[0, :-1]) == size).all():
                index = np.concatenate([index[:, :: SECTOR // size], index[:, -1:]], axis=1)
            touched[index >> (SECTOR // size).bit_length() - 1] = True


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
        read, written = (np.zeros(-(-array.nbytes // SECTOR), bool) if self._distinct else None for _ in range(2))
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

    def load(self, address: Value, size: int, count: int, active: Array, report: Report) -> list[Array]:
        """Read ``count`` adjacent elements of ``size`` bytes for each active thread, from its address on.

        Gives unsigned integers, one array for each element. Faults go to ``report``.
        """
        if active.size == 1:
            region = self._region(address, size * count, report)
            if region is not None:
                asked = region.unset or region.read is not None or region.watched is not None
                if isinstance(address, np.ndarray) and address.size == 1 and not asked:
                    place = (address.item() - region.base) // size
                    return [region.units(size)[place + k : place + k + 1].reshape(1, 1).copy() for k in range(count)]
                if region.unset:
                    self._report_unset(region, (0, 0), report)
                index = unit_index(address, region.base, size)
                region.touch(index, size, address, written=False)
                if region.watched is not None and getattr(report, "plain", False):
                    self._watch(region, index, size, count, None, report)
                return [region.units(size)[index + k if k else index] for k in range(count)]
        shape, places, picked, local = _picked(address, active, report)
        results = [np.zeros(shape, unsigned(size)) for _ in range(count)]
        for region, chosen in self._by_region(picked, size * count, local):
            if region.unset:
                self._report_unset(region, (0, _first(chosen)), local)
            index = unit_index(picked[chosen], region.base, size)
            region.touch(index, size, written=False)
            if region.watched is not None and getattr(report, "plain", False):
                self._watch(region, index, size, count, places[chosen], report, shape=shape)
            for k, result in enumerate(results):
                result.reshape(-1)[places[chosen]] = region.units(size)[index + k]
        return results

    def watch(self, read: set[str] | None, stored: set[str] | None, *, strict: bool) -> bool:
        """Look for races in the arrays that are stored to, by their names, or in all; whether there are any."""
        for place, region in enumerate(self._regions):
            if region.writable and (stored is None or region.name in stored):
                both = strict or read is None or region.name in read
                watched = Watched(region.data, region.name) if both else None
                self._regions[place] = replace(region, watched=watched, compared=[0 if both else _COMPARED])
        return any(region.watched or region.compared[0] for region in self._regions)

    @staticmethod
    def _overwritten(
        region: Region, size: int, lost: Array, index: Array, places: Array, threads: int, report: Report
    ) -> None:
        """Report that of the threads of a store, at some places of the chunk, one did not find what it stored."""
        region.compared[0] -= 1
        if getattr(report, "plain", False) and lost.any():
            first = int(lost.argmax())
            byte = int(spread(index, lost.shape).flat[first]) * size
            text = f"store of {size} bytes at byte {byte} of {region.name}, which another thread writes as well"
            report(GlobalRaceError, divmod(int(places[first]), threads), text, region.base + byte)

    def _watch(
        self, region: Region, index: Array, size: int, count: int, places: Array | None, report: Any,
        values: Sequence[Array] = (), shape: tuple[int, ...] = (),
    ) -> None:  # fmt: skip
        """Look whether an access to elements of ``size`` bytes races, of all threads or of those at some places."""
        chunk = report.chunk
        if shape not in ((), chunk.shape):  # one row for all blocks
            row = spread(np.arange(chunk.shape[0] * chunk.shape[1]).reshape(chunk.shape), chunk.shape)
            keep = np.zeros(shape, bool)
            keep.reshape(-1)[places] = True
            on = spread(keep, chunk.shape)
            full = np.zeros(shape, index.dtype)
            full.reshape(-1)[places] = index
            index, places = spread(full, chunk.shape)[on], row[on]
        elif places is None:
            index, places = spread(index, chunk.shape).reshape(-1), np.arange(chunk.shape[0] * chunk.shape[1])
        meeting, width = chunk.meeting(places), size * count
        if values:
            given = [spread(value, chunk.shape).reshape(-1)[places] for value in values]
            found = region.watched.store(index // count, width, given, region.units(size), meeting)  # type: ignore[union-attr]
        else:
            found = region.watched.load(index // count, width, meeting)  # type: ignore[union-attr]
        if found is not None:
            position = divmod(int(places[found[0]]), chunk.shape[1])
            report(GlobalRaceError, position, found[1], region.base + int(index[found[0]]) * size)

    def _report_unset(self, region: Region, position: tuple[int, int], report: Report) -> None:
        text = f"the source gives {region.name} no value; give it one, as one of the launch's variables"
        report(UnsetVariableError, position, text, region.base)

    def store(self, address: Value, size: int, values: list[Array], active: Array, report: Report) -> None:
        """Write adjacent elements for each active thread; as `load`, with an array of ``values`` for each element."""
        if active.size == 1:
            region = self._region(address, size * len(values), report)
            if region is not None:
                index = _writable(region, unit_index(address, region.base, size), size, active, report)
                region.touch(index, size, address, written=True)
                if region.watched is not None and getattr(report, "plain", False):
                    self._watch(region, index, size, len(values), None, report, values)
                for k, value in enumerate(values):
                    place = index + k if k else index
                    if value.size > 1 and value.shape != place.shape:
                        place = spread(place, np.broadcast_shapes(place.shape, value.shape))
                    region.units(size)[place] = value
                    if region.compared[0] and value.size > 1:
                        lost = region.units(size)[place] != value
                        self._overwritten(region, size, lost, place, np.arange(lost.size), lost.shape[1], report)
                return
        shape, places, picked, local = _picked(address, active, report, *(value.shape for value in values))
        for region, chosen in self._by_region(picked, size * len(values), local):
            index = _writable(region, unit_index(picked[chosen], region.base, size), size, chosen, local)
            region.touch(index, size, written=True)
            if region.watched is not None and getattr(report, "plain", False):
                self._watch(region, index, size, len(values), places[chosen], report, values, shape)
            for k, value in enumerate(values):
                mine = spread(value, shape).reshape(-1)[places[chosen]]
                region.units(size)[index + k] = mine
                if region.compared[0]:
                    lost = region.units(size)[index + k] != mine
                    self._overwritten(region, size, lost, index + k, places[chosen], shape[1], report)

    def atomic(
        self, address: Value, size: int, active: Array, report: Report, shape: tuple[int, int]
    ) -> list[tuple[Array, Array, Chosen]]:
        """Check an atomic access of a chunk of (blocks, threads).

        For each array that it reaches: its units of ``size`` bytes, the places, and for which of the active threads.
        """
        _, _, picked, local = _picked(address, active, report, shape)
        found = []
        for region, chosen in self._by_region(picked, size, local):
            index = _writable(region, unit_index(picked[chosen], region.base, size), size, chosen, local)
            for written in (False, True):
                region.touch(index, size, written=written)
            found.append((region.units(size), index, chosen))
        return found

    def _region(self, address: Value, width: int, report: Report) -> Region | None:
        """The one region that holds all addresses; None if several do or the check fails."""
        low, high = _low_high(address)
        region = self._around(low, high, width)
        if region is not None and (low % width == 0 if low == high else aligned(address, width)):
            return region
        if isinstance(address, Sum) or address.ndim == 2:
            array = dense(address).view(np.int64)
            self._by_region(array.reshape(-1), width, _unravelled(report, array.shape))
        return None

    def _around(self, low: int, high: int, width: int) -> Region | None:
        """The array that holds accesses from an address up to another."""
        return next((each for each in self._regions if each.base <= low and high + width <= each.end), None)

    def _by_region(self, addresses: Array, width: int, report: Report) -> list[tuple[Region, Chosen]]:
        """The arrays that some addresses lie in, and which of the addresses lie in each."""
        region = self._around(*_low_high(addresses), width)
        if region is not None and aligned(addresses, width):
            return [(region, np.s_[:])]
        bases = np.array([region.base for region in self._regions] or [0], np.int64)
        owner = np.maximum(np.searchsorted(bases, addresses, side="right") - 1, 0)
        ends = np.array([region.end for region in self._regions] or [0], np.int64)
        outside = (addresses < bases[owner]) | (addresses > ends[owner] - width)
        if outside.any():
            first = int(outside.argmax())
            report(OutOfBoundsError, (0, first), self._stray(int(addresses[first]), width), int(addresses[first]))
        crooked = (addresses & (width - 1)) != 0
        if crooked.any():
            first = int(crooked.argmax())
            text = f"address {int(addresses[first]):#x} is not a multiple of {width} bytes"
            report(MisalignedError, (0, first), text, int(addresses[first]))
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


def _picked(
    address: Value, active: Array, report: Report, *others: tuple[int, ...]
) -> tuple[tuple[int, ...], Array, Array, Report]:
    """The addresses of the active threads as a list, and where they stand in the chunk."""
    whole = dense(address).view(np.int64)
    shape = np.broadcast_shapes(whole.shape, active.shape, *others)
    places = occupancy(active, shape).places
    picked = spread(whole, shape).reshape(-1)[places]

    def local(error: Any, position: tuple[int, int], text: str, place: int) -> None:
        report(error, divmod(int(places[position[1]]), shape[1]), text, place)

    return shape, places, picked, local


def _first(chosen: Chosen) -> int:
    return 0 if isinstance(chosen, slice) else int(chosen.argmax())


def _unravelled(report: Report, shape: tuple[int, ...]) -> Report:
    def local(error: Any, position: tuple[int, int], text: str, place: int) -> None:
        report(error, (position[1] // shape[1], position[1] % shape[1]), text, place)

    return local


def _writable(region: Region, index: Array, size: int, chosen: Chosen, report: Report) -> Array:
    """The places of a write, unless the array is read-only: that is reported for the first thread that writes."""
    if not region.writable:
        byte = int(index.flat[0]) * size
        text = f"byte {byte} of {region.name} of {region.data.size} bytes"
        report(ReadOnlyError, (0, _first(chosen)), text, region.base + byte)
    return index
