"""Arrays in an address space of ptxcount, far apart, so that accesses out of bounds hit no other array."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ..counting.transactions import SECTOR
from ..lanes.symbolic_values import Sum, Value, dense
from ..lanes.warps import Array, find_active_lanes, spread, unsigned
from ..util.errors import (
    GlobalRaceError,
    LaunchError,
    MisalignedError,
    OutOfBoundsError,
    ReadOnlyError,
    UnsetVariableError,
)
from .global_races import AccessHistory
from .regions import ArrayPart, Region, Selection

ALIGNMENT = 256
GUARD = 1 << 32
#: Number of stores to a write-only array that are checked for races.
_COMPARED_STORES = 16
#: First addresses of global memory, constant memory and parameters: far apart, so that they never overlap.
FIRST_ADDRESS = 1 << 40
FIRST_CONSTANT = 1 << 50
#: Parameters are below 2**32, because compilers use 32-bit addresses for them; no other memory is in their window.
FIRST_PARAMETER = 1 << 20
PARAMETER_GUARD = 1 << 18
#: Addresses below this come from a null pointer and an index.
_NEAR_NULL = 1 << 16
#: Functions that report a fault: error class, position (block, thread) in the chunk, text, address.
Report = Callable[..., None]


def _find_bounds(address: Value) -> tuple[int, int]:
    if isinstance(address, Sum):
        return address.bounds()
    if address.size == 1:
        return (int(address.item()),) * 2
    return (int(address.min()), int(address.max())) if address.size else (FIRST_ADDRESS, FIRST_ADDRESS)


def is_aligned(address: Value, width: int) -> bool:
    """Test that all addresses are multiples of the width, a power of two."""
    if isinstance(address, Sum):
        first = address.thread.flat[0]
        return is_aligned(address.block + first, width) and is_aligned(address.thread - first, width)
    return int(np.bitwise_or.reduce(address, axis=None)) & (width - 1) == 0


class ArrayMemory:
    """The arrays that a launch can access, from an address on. ``distinct``: also track the touched sectors.

    There are ``guard`` bytes between two arrays.
    """

    def __init__(self, first: int = FIRST_ADDRESS, *, distinct: bool = False, guard: int = GUARD) -> None:
        self._regions: list[Region] = []
        self._distinct = distinct
        self._next, self._guard = first, guard

    def add(self, array: Array, name: str, *, unset: bool = False) -> int:
        """Map a C-contiguous array, which is modified in place unless it is read-only; return its address.

        ``name`` is its name in errors. ``unset``: a read is a fault. Raises `LaunchError` if a kernel cannot use its
        layout in memory.
        """
        if not array.flags.c_contiguous or not array.dtype.isnative or array.dtype.hasobject:
            raise LaunchError(
                f"{name} is an array of {array.dtype}; it must hold numbers in the byte order of this machine"
            )
        region = Region(self._next, array.reshape(-1).view(np.uint8), name, array.flags.writeable, unset)
        if self._distinct:
            region = replace(region, read={}, written=np.zeros(-(-array.nbytes // SECTOR), bool))
        self._regions.append(region)
        self._next = (region.end + self._guard + ALIGNMENT) // ALIGNMENT * ALIGNMENT
        return region.base

    def arrays(self) -> list[tuple[int, int, str]]:
        """Return address, size in bytes and name of each array."""
        return [(region.base, region.data.size, region.name) for region in self._regions]

    def distinct_sectors(self) -> tuple[int, int]:
        """Count the distinct sectors that were read, and written."""
        written = [np.count_nonzero(region.written) for region in self._regions if region.written is not None]
        return sum(region.count_read() for region in self._regions), int(sum(written))

    def fetched_sectors(self) -> int:
        """Count the minimum sectors read from DRAM, if a miss fetches 64 bytes, or as its instruction says."""
        return sum(region.count_fetched() for region in self._regions)

    def load(
        self, address: Value, size: int, count: int, active: Array, report: Report, *, fetch: int = 2
    ) -> list[Array]:
        """Read ``count`` adjacent elements of ``size`` bytes for each active thread, from its address on.

        A miss of the L2 cache fetches ``fetch`` sectors. Returns unsigned integers, one array per element. Faults go to
        ``report``.
        """
        shape, parts = self._resolve(address, size, count, active, report, fetch=fetch)
        results = [np.zeros(shape, unsigned(size)) for _ in range(count)]
        for part in parts:
            self._check_race(part, size, count, shape, report)
            values = [part.gather(k) for k in range(count)]
            if part.places is None:
                return values
            for result, value in zip(results, values, strict=True):
                result.reshape(-1)[part.places] = value
        return results

    def watch(self, reached: Sequence[set[str] | None], *, strict: bool) -> bool:
        """Look for races in the arrays of `ReachedNames`, None for all, that are written; tell if there are any."""
        for place, region in enumerate(self._regions):
            loads, stores, scans, strong_writes = (names is None or region.name in names for names in reached)
            if region.writable and (stores or (scans and strong_writes)):
                watched, scanned = (
                    AccessHistory(region.data, region.name) if compares_loads else None
                    for compares_loads in (stores and (strict or loads), scans and strong_writes)
                )
                compared = [0 if watched or not stores else _COMPARED_STORES]
                self._regions[place] = replace(region, watched=watched, scanned=scanned, compared=compared)
        return any(region.watched or region.scanned or region.compared[0] for region in self._regions)

    def _check_race(
        self, part: ArrayPart, size: int, count: int, shape: tuple[int, ...], report: Any, values: Sequence[Array] = ()
    ) -> None:
        """Look whether an access races, if somebody asks; a store that orders others is only noted."""
        region, plain = part.region, getattr(report, "plain", False)
        chunk: Any = getattr(report, "chunk", None)
        histories = [region.watched if plain else region.scanned if values else None]
        if plain and not values and id(chunk.instruction) in chunk.context.scans:
            histories.append(region.scanned)
        if chunk is None or not any(histories):
            return
        full = part.unit
        if part.places is not None:  # may be one row for all blocks
            full = np.full(shape, -1, np.int64)
            full.reshape(-1)[part.places] = part.unit
        full = spread(full, chunk.shape).reshape(-1)
        places = np.flatnonzero(full >= 0)
        index, event, width = full[places] // count, chunk.make_event(places), size * count
        stored_values = [spread(value, chunk.shape).reshape(-1)[places] for value in values]
        for history in filter(None, histories):
            if values:
                note = history.note_store if plain else history.note_strong_write
                race = note(index, width, stored_values, region.units(size), event)
            else:
                race = history.note_load(index, width, event)
            if race is not None:
                position = divmod(int(places[race[0]]), chunk.shape[1])
                text = race[1]
                if history is region.scanned:
                    text += "; a loop ends by it, so that counts depend on the order"
                report(GlobalRaceError, position, text, region.base + int(index[race[0]]) * width)

    def store(self, address: Value, size: int, values: list[Array], active: Array, report: Report) -> None:
        """Write adjacent elements for each active thread, as `load`; ``values`` has one array per element."""
        shapes = [value.shape for value in values]
        shape, parts = self._resolve(address, size, len(values), active, report, *shapes, kind="store")
        for part in parts:
            self._check_race(part, size, len(values), shape, report, values)
            units = part.region.units(size)
            for k, value in enumerate(values):
                place = part.unit + k if k else part.unit
                stored = value if part.places is None else spread(value, shape).reshape(-1)[part.places]
                if stored.size > 1 and stored.shape != place.shape:
                    place = spread(place, np.broadcast_shapes(place.shape, stored.shape))
                units[place] = stored
                if part.region.compared[0] and stored.size > 1:
                    self._check_lost_stores(part, place, units[place] != stored, size, shape, report)

    @staticmethod
    def _check_lost_stores(
        part: ArrayPart, place: Array, lost: Array, size: int, shape: tuple[int, ...], report: Report
    ) -> None:
        """Report a store in which one thread overwrote another thread's value."""
        region = part.region
        region.compared[0] -= 1
        if getattr(report, "plain", False) and lost.any():
            first = int(lost.argmax())
            byte = int(spread(place, lost.shape).flat[first]) * size
            text = f"store of {size} bytes at byte {byte} of {region.name}"
            text += ", which another thread writes without synchronization"
            position = (
                divmod(first, lost.shape[1]) if part.places is None else divmod(int(part.places[first]), shape[1])
            )
            report(GlobalRaceError, position, text, region.base + byte)

    def check_atomic(
        self, address: Value, size: int, active: Array, report: Any, shape: tuple[int, int]
    ) -> Iterator[tuple[Array, Array, Selection]]:
        """Check an atomic access of a chunk of (blocks, threads).

        Yield for each accessed array its units of ``size`` bytes, the indices, and the active threads. After the caller
        has changed the units, note the write for the race check.
        """
        for part in self._resolve(address, size, 1, active, report, shape, kind="atomic")[1]:
            part.touch(written=False)
            index = part.unit if part.places is not None else spread(part.unit, shape).reshape(-1)
            units, scanned = part.region.units(size), part.region.scanned
            old = units[index] if scanned else units[:0]
            yield units, index, part.chosen
            if scanned:
                places = np.arange(prod(shape)) if part.places is None else part.places
                scanned.note_strong_write(index, size, [old], units, report.chunk.make_event(places))

    def _resolve(
        self, address: Value, size: int, count: int, active: Array, report: Report, *shapes: tuple[int, ...],
        kind: str = "load", fetch: int = 2,
    ) -> tuple[tuple[int, ...], list[ArrayPart]]:  # fmt: skip
        """Check an access, and note its sectors; return the shape of the indices, and the accessed parts of arrays."""
        shape, parts = self._find_parts(address, size, size * count, active, report, shapes, kind)
        for part in parts:
            first = (0, 0) if part.places is None else divmod(int(part.places[0]), shape[1])
            if part.region.unset:
                _report_unset(part.region, first, report)
            if kind != "load" and not part.region.writable:
                byte = int(part.unit.flat[0]) * size
                text = f"{kind} of {size * count} bytes at byte {byte} of {part.region.name} of"
                report(ReadOnlyError, first, f"{text} {part.region.data.size} bytes", part.region.base + byte)
            part.touch(written=kind != "load", fetch=fetch)
        return shape, parts

    def _find_parts(
        self, address: Value, size: int, width: int, active: Array, report: Report, shapes: Sequence[tuple[int, ...]],
        kind: str,
    ) -> tuple[tuple[int, ...], list[ArrayPart]]:  # fmt: skip
        """Find the arrays that an access touches; report addresses outside of all arrays."""
        low, high = _find_bounds(address)
        region = self._find_region(low, high, width) if active.size == 1 else None
        shape: tuple[int, ...] = (1, 1)
        if region is not None and (low % width == 0 if low == high else is_aligned(address, width)):
            parts = [ArrayPart(region, address, size, None, np.s_[:])]
        else:
            addresses = dense(address).view(np.int64)
            shape = np.broadcast_shapes(addresses.shape, active.shape, *shapes)
            places = find_active_lanes(active, shape).places
            active_addresses = spread(addresses, shape).reshape(-1).take(places)

            def report_at(error: Any, place: int, text: str) -> None:
                detail = f"{kind} of {text}"
                report(error, divmod(int(places[place]), shape[1]), detail, int(active_addresses[place]))

            parts = [ArrayPart(region, active_addresses[chosen], size, places[chosen], chosen)
                     for region, chosen in self._split_by_region(active_addresses, width, report_at)]  # fmt: skip
        return shape, parts

    def _find_region(self, low: int, high: int, width: int) -> Region | None:
        """Find the array that contains all accesses from one address to another."""
        return next((region for region in self._regions if region.base <= low and high + width <= region.end), None)

    def _split_by_region(
        self, addresses: Array, width: int, report: Callable[[Any, int, str], None]
    ) -> list[tuple[Region, Selection]]:
        """Split addresses by the array that contains them."""
        region = self._find_region(*_find_bounds(addresses), width)
        if region is not None and is_aligned(addresses, width):
            return [(region, np.s_[:])]
        bases, ends = np.array([(each.base, each.end) for each in self._regions] or [(0, 0)], np.int64).T
        owner = np.maximum(np.searchsorted(bases, addresses, side="right") - 1, 0)
        outside = (addresses < bases[owner]) | (addresses > ends[owner] - width)
        misaligned = (addresses & (width - 1)) != 0
        for faulting, error in ((outside, OutOfBoundsError), (misaligned, MisalignedError)):
            if faulting.any():
                first = int(faulting.argmax())
                address = int(addresses[first])
                is_outside = error is OutOfBoundsError
                text = (
                    self._describe_stray(address, width)
                    if is_outside
                    else f"{width} bytes at address {address:#x}, which is not a multiple of {width} bytes"
                )
                report(error, first, text)
        return [(self._regions[index], owner == index) for index in np.unique(owner)]

    def _describe_stray(self, address: int, width: int) -> str:
        """Describe an access out of bounds by its distance from the nearest array."""
        access = f"{width} bytes at {address:#x}"
        if abs(address) < _NEAR_NULL:
            return f"{access}: a null pointer" + (f" {address:+d} bytes" if address else "")
        if not self._regions:
            return access
        nearest = min(self._regions, key=lambda region: max(region.base - address, address - region.end))
        size = f"{nearest.name} of {nearest.data.size} bytes"
        if address < nearest.base:
            return f"{access}, {nearest.base - address} bytes before {size}"
        byte = address - nearest.base
        if byte > 2 * nearest.data.size and len(self._regions) > 1:  # far outside: the index may be of another array
            size = re.sub(r"^(\S+) \(", r"'\1' (", size)  # a name may be a word, such as in
            return f"{access}, in no array: {address - nearest.end} bytes after the end of the nearest below, {size}"
        return f"{access}, which is byte {byte} of {size}"


def _report_unset(region: Region, position: tuple[int, int], report: Report) -> None:
    example = f"float32[{region.data.size // 4}]" if region.data.size % 4 == 0 else f"uint8[{region.data.size}]"
    text = f"{region.name} has no value in the source; set it: --variable {region.name}={example}=ones"
    report(UnsetVariableError, position, text, region.base)
