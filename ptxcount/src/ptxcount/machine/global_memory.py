"""Accesses to the arrays of a launch: loads, stores and atomics, and their races."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ..lanes.symbolic_values import Value
from ..lanes.warps import Array, spread, unsigned
from ..util.errors import GlobalRaceError, ReadOnlyError, UnsetVariableError
from ..util.grammar import count_noun
from .address_map import AddressMap, Report
from .global_races import AccessHistory
from .regions import ArrayPart, Region, Selection

#: Number of stores to a write-only array whose threads are compared with each other.
_COMPARED_STORES = 16


class ArrayMemory(AddressMap):
    """An `AddressMap` with the accesses of a launch: content, touched sectors and races."""

    def distinct_sectors(self) -> tuple[int, int]:
        """Return the number of distinct sectors that were read, and that were written."""
        written = [np.count_nonzero(region.written) for region in self._regions if region.written is not None]
        return sum(region.count_read() for region in self._regions), int(sum(written))

    def fetched_sectors(self) -> int:
        """Return the minimum number of sectors read from DRAM, if each L2 miss reads the load's ``fetch`` sectors."""
        return sum(region.count_fetched() for region in self._regions)

    def load(
        self, address: Value, size: int, count: int, active: Array, report: Report, *, fetch: int = 2
    ) -> list[Array]:
        """Read ``count`` adjacent elements of ``size`` bytes for each active thread, from the thread's address on.

        A miss of the L2 cache fetches ``fetch`` sectors. Returns unsigned integers (raw bytes for 16-byte elements),
        one array per element. Faults go to ``report``.
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

    def watch_races(self, reached: Sequence[set[str] | None], *, strict: bool) -> bool:
        """Begin to check races in writable arrays that the kernel writes; return True if there is any.

        ``reached`` has the array names of each field of `ReachedNames`; None means all arrays.
        """
        for place, region in enumerate(self._regions):
            loads, stores, scans, strong_writes = (names is None or region.name in names for names in reached)
            if region.writable and (stores or (scans and strong_writes)):
                watched = AccessHistory(region.data, region.name) if stores and (strict or loads) else None
                scanned = AccessHistory(region.data, region.name) if scans and strong_writes else None
                compared = [_COMPARED_STORES if stores and not watched else 0]
                self._regions[place] = replace(region, watched=watched, scanned=scanned, compared=compared)
        return any(region.watched or region.scanned or region.compared[0] for region in self._regions)

    def _check_race(
        self, part: ArrayPart, size: int, count: int, shape: tuple[int, ...], report: Any, values: Sequence[Array] = ()
    ) -> None:
        """Report the first race of a weak access, if races in its array are checked. A store has ``values``.

        A strong store is only recorded: a weak load that ends a loop may race with it. Strong loads are ignored.
        """
        region, is_weak = part.region, getattr(report, "is_weak", False)
        chunk: Any = getattr(report, "chunk", None)
        is_scan = is_weak and not values and id(chunk.instruction) in chunk.context.scans
        is_strong_store = not is_weak and bool(values)
        histories = [region.watched if is_weak else None, region.scanned if is_scan or is_strong_store else None]
        if chunk is None or not any(histories):
            return
        full = part.first_index
        if part.places is not None:  # may be one row for all blocks
            full = np.full(shape, -1, np.int64)
            full.reshape(-1)[part.places] = part.first_index
        full = spread(full, chunk.shape).reshape(-1)  # by thread of the chunk; -1: it does not access the array
        places = np.flatnonzero(full >= 0)
        index, event, width = full[places] // count, chunk.make_event(places), size * count
        stored_values = [spread(value, chunk.shape).reshape(-1)[places] for value in values]
        for history in filter(None, histories):
            if values:
                note = history.note_store if is_weak else history.note_strong_write
                race = note(index, width, stored_values, region.view_elements(size), event)
            else:
                race = history.note_load(index, width, event)
            if race is not None:
                access, text = race
                if history is region.scanned:
                    text += "; this load ends a loop, so counts depend on the order of threads"
                position = divmod(int(places[access]), chunk.shape[1])
                report(GlobalRaceError, position, text, region.base + int(index[access]) * width)

    def store(self, address: Value, size: int, values: list[Array], active: Array, report: Report) -> None:
        """Write adjacent elements for each active thread; ``values`` has one array per element. See `load`."""
        shapes = [value.shape for value in values]
        shape, parts = self._resolve(address, size, len(values), active, report, *shapes, kind="store")
        for part in parts:
            self._check_race(part, size, len(values), shape, report, values)
            elements = part.region.view_elements(size)
            for k, value in enumerate(values):
                place = part.first_index + k if k else part.first_index
                stored = value if part.places is None else spread(value, shape).reshape(-1)[part.places]
                if stored.size > 1 and stored.shape != place.shape:
                    place = spread(place, np.broadcast_shapes(place.shape, stored.shape))
                elements[place] = stored
                if part.region.compared[0] and stored.size > 1:
                    self._check_lost_stores(part, place, elements[place] != stored, size, shape, report)

    @staticmethod
    def _check_lost_stores(
        part: ArrayPart, place: Array, lost: Array, size: int, shape: tuple[int, ...], report: Report
    ) -> None:
        """Report the first store of the mask ``lost``: another thread has overwritten the value."""
        region = part.region
        region.compared[0] -= 1
        if not (getattr(report, "is_weak", False) and lost.any()):
            return
        first = int(lost.argmax())
        byte = int(spread(place, lost.shape).flat[first]) * size
        text = f"store of {count_noun(size, 'byte')} at byte {byte} of {region.name}"
        text += ", which another thread writes without synchronization"
        position = divmod(first, lost.shape[1]) if part.places is None else divmod(int(part.places[first]), shape[1])
        report(GlobalRaceError, position, text, region.base + byte)

    def find_atomic_cells(
        self, address: Value, size: int, active: Array, report: Any, shape: tuple[int, int]
    ) -> Iterator[tuple[Array, Array, Selection]]:
        """Check an atomic access of a chunk of (blocks, threads).

        For each accessed array, yield its elements of ``size`` bytes, the index of the element of each thread that
        accesses it, and the selection of these threads among the active ones. After the caller has changed the
        elements, note the write for the race check.
        """
        for part in self._resolve(address, size, 1, active, report, shape, kind="atomic")[1]:
            part.mark_sectors(written=False)
            index = part.first_index if part.places is not None else spread(part.first_index, shape).reshape(-1)
            elements, scanned = part.region.view_elements(size), part.region.scanned
            old = elements[index] if scanned else elements[:0]
            yield elements, index, part.chosen
            if scanned:
                places = np.arange(prod(shape)) if part.places is None else part.places
                scanned.note_strong_write(index, size, [old], elements, report.chunk.make_event(places))

    def _resolve(
        self, address: Value, size: int, count: int, active: Array, report: Report, *shapes: tuple[int, ...],
        kind: str = "load", fetch: int = 2,
    ) -> tuple[tuple[int, ...], list[ArrayPart]]:  # fmt: skip
        """Check an access, and mark its sectors; return what `find_parts` returns."""
        shape, parts = self.find_parts(address, size, size * count, active, report, shapes, kind)
        for part in parts:
            first = (0, 0) if part.places is None else divmod(int(part.places[0]), shape[1])
            if part.region.unset:
                _report_unset(part.region, first, report)
            if kind != "load" and not part.region.writable:
                byte = int(part.first_index.flat[0]) * size
                text = f"{kind} of {count_noun(size * count, 'byte')} at byte {byte} of {part.region.name} of"
                array_size = count_noun(part.region.data.size, "byte")
                report(ReadOnlyError, first, f"{text} {array_size}", part.region.base + byte)
            part.mark_sectors(written=kind != "load", fetch=fetch)
        return shape, parts


def _report_unset(region: Region, position: tuple[int, int], report: Report) -> None:
    example = f"float32[{region.data.size // 4}]" if region.data.size % 4 == 0 else f"uint8[{region.data.size}]"
    text = f"{region.name} has no value in the source; set it: --variable {region.name}={example}=ones"
    report(UnsetVariableError, position, text, region.base)
