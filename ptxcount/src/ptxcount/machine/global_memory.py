"""Accesses to the arrays of a launch: loads, stores and atomics, their races, and stale reads."""

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from ..lanes.symbolic_values import Value
from ..lanes.warps import Array, spread, unsigned
from ..util.errors import GlobalRaceError, ReadOnlyError, StaleReadError, UnsetVariableError
from ..util.grammar import count_noun
from .address_map import AddressMap, Report
from .global_races import AccessHistory
from .reached_names import ANYTHING, ReachedNames
from .regions import ArrayPart, Selection
from .reporter import Reporter
from .stale_reads import WrittenBytes, describe_load

#: Number of stores to a write-only array that are checked for threads that overwrite each other's values.
_COMPARED_STORES = 16


class ArrayMemory(AddressMap):
    """An `AddressMap` whose arrays a launch loads and stores, with touched sectors and races."""

    def distinct_sectors(self) -> tuple[int, int]:
        """Return the number of distinct sectors that were read, and that were written."""
        written = [np.count_nonzero(region.written) for region in self._regions if region.written is not None]
        return sum(region.count_read() for region in self._regions), int(sum(written))

    def fetched_sectors(self) -> int:
        """Return the minimum number of sectors read from DRAM; for the sectors of an L2 miss, see `load`."""
        return sum(region.count_fetched() for region in self._regions)

    def load(
        self, address: Value, size: int, count: int, active: Array, report: Report, *, fetch: int = 2
    ) -> list[Array]:
        """Read ``count`` adjacent elements of ``size`` bytes for each active thread, from the thread's address on.

        Return one array per element, of unsigned integers (of raw bytes, if an element has 16). ``report`` is called
        for faults, and for races if it is a `Reporter`. A miss of the L2 cache fetches ``fetch`` sectors;
        with 0, nothing is read from DRAM.
        """
        shape, parts = self._resolve(address, size, count, active, report, fetch=fetch)
        results = [np.zeros(shape, unsigned(size)) for _ in range(count)]
        for part in parts:
            if isinstance(report, Reporter):
                _check_load_races(part, count, shape, report)
                _check_stale_read(part, count, shape, report)
            values = [part.gather(k) for k in range(count)]
            if part.places is None:
                return values
            for result, value in zip(results, values, strict=True):
                result.reshape(-1)[part.places] = value
        return results

    def watch_races(self, reached: ReachedNames, *, strict: bool) -> bool:
        """Begin to check races and stale reads in writable arrays; tell if there are arrays to check for races.

        ``reached`` has the names of arrays, or `ANYTHING`. Unless ``strict``, stores to an array that the kernel does
        not load are only compared within an instruction, the first `_COMPARED_STORES` of them.
        """
        for region in self._regions:
            is_reached = (ANYTHING in names or region.name in names for names in reached)
            loads, stores, scans, strong_writes, noncoherent_loads = is_reached
            if not region.writable:
                continue
            if stores and (strict or loads):
                region.watched = AccessHistory(region.data, region.name)
            elif stores:
                region.stores_to_compare = _COMPARED_STORES
            if scans and strong_writes:
                region.scanned = AccessHistory(region.data, region.name)
            if noncoherent_loads:
                region.written_bytes = WrittenBytes(region.data.size)
        return any(region.watched or region.scanned or region.stores_to_compare for region in self._regions)

    def store(self, address: Value, size: int, values: list[Array], active: Array, report: Report) -> None:
        """Write adjacent elements for each active thread; ``values`` has one array per element. See `load`."""
        shapes = [value.shape for value in values]
        shape, parts = self._resolve(address, size, len(values), active, report, *shapes, kind="store")
        for part in parts:
            if isinstance(report, Reporter):
                _check_store_races(part, values, shape, report)
            elements, is_compared = part.region.view_elements(size), False
            for k, value in enumerate(values):
                place = part.first_index + k if k else part.first_index
                stored = value if part.places is None else spread(value, shape).reshape(-1)[part.places]
                if stored.size > 1 and stored.shape != place.shape:
                    place = spread(place, np.broadcast_shapes(place.shape, stored.shape))
                elements[place] = stored
                if part.region.stores_to_compare and stored.size > 1:
                    is_compared = True
                    lost = elements[place] != stored
                    if isinstance(report, Reporter) and report.is_weak and lost.any():
                        _report_lost_store(part, place, lost, shape, report)
            part.region.stores_to_compare -= is_compared
            if part.region.written_bytes:
                source = report.source if isinstance(report, Reporter) else None
                part.region.written_bytes.record(part.first_index, size, len(values), source)

    def find_atomic_cells(
        self, address: Value, size: int, active: Array, report: Reporter, shape: tuple[int, int]
    ) -> Iterator[tuple[Array, Array, Selection]]:
        """Check an atomic access of a chunk of (blocks, threads), and let the caller execute it.

        For each accessed array, yield its elements of ``size`` bytes, the index of the element of each thread that
        accesses it, and the selection of these threads among the active ones. The caller changes the elements before
        it goes on: then the race check records the changes.
        """
        for part in self._resolve(address, size, 1, active, report, shape, kind="atomic")[1]:
            part.mark_sectors(written=False)
            index = part.first_index if part.places is not None else spread(part.first_index, shape).reshape(-1)
            elements = part.region.view_elements(size)
            scanned, written_bytes = part.region.scanned, part.region.written_bytes
            old = elements[index] if scanned or written_bytes else elements[:0]
            yield elements, index, part.chosen
            if written_bytes:  # an atomic that changes nothing may be a read
                written_bytes.record(index[elements[index] != old], size, 1, report.source)
            if scanned:
                places = np.arange(prod(shape)) if part.places is None else part.places
                scanned.record_strong_write(index, size, [old], elements, report.chunk.make_event(places))

    def _resolve(
        self, address: Value, size: int, count: int, active: Array, report: Report, *shapes: tuple[int, ...],
        kind: str = "load", fetch: int = 2,
    ) -> tuple[tuple[int, ...], list[ArrayPart]]:  # fmt: skip
        """Check an access, and mark its sectors; return what `find_parts` returns."""
        shape, parts = self.find_parts(address, size, size * count, active, report, shapes, kind)
        for part in parts:
            first = (0, 0) if part.places is None else divmod(int(part.places[0]), shape[1])
            if part.region.unset:
                size_in_bytes = part.region.data.size
                example = f"float32[{size_in_bytes // 4}]" if size_in_bytes % 4 == 0 else f"uint8[{size_in_bytes}]"
                remedy = f"set it: --variable {part.region.name}={example}=ones"
                text = f"{part.region.name} has no value in the source; {remedy}"
                report(UnsetVariableError, first, text, part.region.base)
            if kind != "load" and not part.region.writable:
                byte = int(part.first_index.flat[0]) * size
                text = f"{kind} of {count_noun(size * count, 'byte')} at byte {byte} of {part.region.name} of"
                array_size = count_noun(part.region.data.size, "byte")
                report(ReadOnlyError, first, f"{text} {array_size}", part.region.base + byte)
            part.mark_sectors(written=kind != "load", fetch=fetch)
        return shape, parts


def _check_load_races(part: ArrayPart, count: int, shape: tuple[int, ...], reporter: Reporter) -> None:
    """Record a weak load of ``count`` elements in the histories of its array, if any, and report a race in each."""
    region, chunk, width = part.region, reporter.chunk, part.size * count
    histories = []
    if reporter.is_weak and region.watched:
        histories.append(region.watched)
    if reporter.is_weak and region.scanned and id(chunk.instruction) in chunk.context.scans:  # it ends a loop
        histories.append(region.scanned)
    if not histories:
        return
    places, index = _find_thread_indices(part, shape, chunk.shape)
    index, event = index // count, chunk.make_event(places)
    for history in histories:
        race = history.record_load(index, width, event)
        if race is not None:
            access, text = race
            if history is region.scanned:
                text += "; this load decides when a loop ends, so counts depend on the order of threads"
            position = divmod(int(places[access]), chunk.shape[1])
            reporter(GlobalRaceError, position, text, region.base + int(index[access]) * width)


def _check_stale_read(part: ArrayPart, count: int, shape: tuple[int, ...], reporter: Reporter) -> None:
    """Report the first thread whose non-coherent load of ``count`` elements reads bytes that the launch has written."""
    region, written_bytes = part.region, part.region.written_bytes
    load = describe_load(reporter.chunk.instruction) if written_bytes and written_bytes.has_writes else None
    if written_bytes is None or load is None:
        return
    places, index = _find_thread_indices(part, shape, reporter.chunk.shape)
    stale_read = written_bytes.find_read(index, part.size, count)
    if stale_read is not None:
        access, writer = stale_read
        byte, (name, advice) = int(index[access]) * part.size, load
        text = f"{name} of {count_noun(part.size * count, 'byte')} at byte {byte} of {region.name}, which the kernel"
        text += f" wrote{f' at {writer}' if writer else ''}: it may return the old value; {advice}"
        position = divmod(int(places[access]), reporter.chunk.shape[1])
        reporter(StaleReadError, position, text, region.base + byte)


def _check_store_races(part: ArrayPart, values: Sequence[Array], shape: tuple[int, ...], reporter: Reporter) -> None:
    """Record a store in the history of its array, if any, before it is executed; report a race.

    A strong store does not race, but a later weak load that ends a loop may race with it.
    """
    region, chunk, width = part.region, reporter.chunk, part.size * len(values)
    history = region.watched if reporter.is_weak else region.scanned
    if history is None:
        return
    places, index = _find_thread_indices(part, shape, chunk.shape)
    index, event, elements = index // len(values), chunk.make_event(places), region.view_elements(part.size)
    stored_values = [spread(value, chunk.shape).reshape(-1)[places] for value in values]
    if not reporter.is_weak:
        history.record_strong_write(index, width, stored_values, elements, event)
        return
    race = history.record_store(index, width, stored_values, elements, event)
    if race is not None:
        access, text = race
        position = divmod(int(places[access]), chunk.shape[1])
        reporter(GlobalRaceError, position, text, region.base + int(index[access]) * width)


def _find_thread_indices(part: ArrayPart, shape: tuple[int, ...], chunk_shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return the threads of the chunk that access an array, and the index of the first element of each.

    ``shape`` is the shape that `AddressMap.find_parts` returns. It may be one row for all blocks.
    """
    index = part.first_index
    if part.places is not None:
        index = np.full(shape, -1, np.int64)  # -1: the thread does not access the array
        index.reshape(-1)[part.places] = part.first_index
    index = spread(index, chunk_shape).reshape(-1)
    places = np.flatnonzero(index >= 0)
    return places, index[places]


def _report_lost_store(part: ArrayPart, place: Array, lost: Array, shape: tuple[int, ...], reporter: Reporter) -> None:
    """Report the first store in the mask ``lost``: another thread has overwritten the value."""
    first = int(lost.argmax())
    byte = int(spread(place, lost.shape).flat[first]) * part.size
    text = f"store of {count_noun(part.size, 'byte')} at byte {byte} of {part.region.name}"
    text += ", which another thread writes without synchronization"
    position = divmod(first, lost.shape[1]) if part.places is None else divmod(int(part.places[first]), shape[1])
    reporter(GlobalRaceError, position, text, part.region.base + byte)
