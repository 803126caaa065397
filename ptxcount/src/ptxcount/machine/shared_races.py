"""Race check for shared memory, by the threads that accessed each byte since the last barrier.

Two threads race if they access the same byte, at least one of them writes, and at least one access is weak. Strong
accesses are atomic, volatile, relaxed, acquire or release. A barrier of the block between the accesses prevents that.
So does a wait of any thread of the block at an mbarrier, or ``bar.warp.sync`` between lanes of its mask (PTX memory
consistency model, 8.9). A strong load that reads another thread's strong write is ordered after all accesses of the
block before that write. The same holds for an atomic with acquire semantics, and for other atomics from the thread's
next fence on.

For each byte and access kind, the check keeps only the lowest and the highest thread. If a thread other than the
current one has accessed the byte, one of these two is such a thread. If masks of ``bar.warp.sync`` may be partial, the
check also keeps the time of each lane's last access. It compares this time with the vector clocks of `warp_clocks`.

The strict check gives volatile accesses that do not poll their own kinds. Two of them race if their threads are in the
same warp: since Volta, lanes do not run in lockstep. Unless strict, stores that change nothing race only with atomics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..lanes.warps import LANES, Array, find_first, spread
from ..util.errors import Source
from .warp_clocks import OrderedTimes, WarpClocks

#: Earlier access kinds that conflict with each access kind.
CONFLICTING_KINDS = {
    "load": ("store", "strong store", "volatile store", "atomic"),
    "store": ("load", "strong load", "volatile load", "store", "strong store", "volatile store", "atomic"),
    "strong load": ("store",),
    **dict.fromkeys(("strong store", "atomic"), ("load", "store")),
    "volatile load": ("store", "volatile store"),
    "volatile store": ("load", "store", "volatile load", "volatile store"),
}
_NO_THREAD = np.int32(32767)
#: Maximum units of pending loads.
_MAX_PENDING = 1 << 16
#: A time after all others.
_ALWAYS = np.full((1, 1), np.iinfo(np.int32).max, np.int32)


class Race(NamedTuple):
    """A racing access of an instruction: its index, the other thread or block, and the other source."""

    access: int
    other: int
    source: Source


class StoredValues(NamedTuple):
    """Values of a store, to be compared with memory and each other if the store may race."""

    #: Shared memory as elements.
    data: Array
    #: Index of the first element of each access: (blocks, threads), or (1, accesses).
    places: Array
    #: Stored elements, one array of this shape per element of an access.
    values: list[Array]
    #: True if one row of accesses represents all blocks.
    one_row: bool

    def changes_nothing(self) -> Array:
        """Tell for each access if memory already holds the values to store."""
        return self._combine([self.data[self.places + k] == value for k, value in enumerate(self.values)])

    def all_agree(self) -> Array:
        """Tell for each access if all accesses of the store to its address have the same value."""
        _, first, group = np.unique(self.places[0], return_index=True, return_inverse=True)
        differs = ~np.logical_and.reduce([value[:, first[group]] == value for value in self.values])
        disputed = np.zeros((len(differs), len(first)), bool)
        row, access = np.nonzero(differs)
        disputed[row, group[access]] = True
        return self._combine([~disputed[:, group]])

    def _combine(self, equal: list[Array]) -> Array:
        is_equal = np.logical_and.reduce(equal)
        return np.asarray(is_equal.all(axis=0) if self.one_row else is_equal.ravel())


class _LastAccesses(NamedTuple):
    """Last accesses of one kind to each unit since the last barrier; each field is (rows, units)."""

    #: The lowest and the highest thread; `_NO_THREAD` and -1 if there is none.
    first: Array
    last: Array
    #: Time of the last access, and the index of its source line in `RaceDetector`.
    time: Array
    source: Array

    def map(self, change: Callable[[Array], Array]) -> _LastAccesses:
        return _LastAccesses(*map(change, self))


class RaceDetector:
    """Race check for the shared memory of the blocks of a chunk.

    One row represents all blocks while all do the same. After blocks diverge, each has its own row.
    """

    def __init__(self, units: int, clocks: WarpClocks | None) -> None:
        self._units, self._rows = units, 1
        #: Order by warp barriers and flags; None without them.
        self.clocks = clocks
        #: Last accesses, by kind.
        self._touched: dict[str, _LastAccesses] = {}
        #: The time of each lane's last access, (rows, units, 32), by access kind.
        self._by_lane: dict[str, Array] = {}
        self._sources: dict[Source, int] = {}
        #: The index in `_sources` of the current instruction's line.
        self._source_index = 0
        #: Loads to record before the next other access: units, threads and source index. A barrier drops them.
        self._pending_loads: list[tuple[Array, Array, int]] = []

    def expand(self, blocks: int) -> None:
        """Keep one row for each block from now on."""
        if self._rows == 1 < blocks:
            self._record_pending_loads()
            for kind, touched in self._touched.items():
                self._touched[kind] = touched.map(lambda array: array.repeat(blocks, axis=0))
            self._by_lane = {kind: times.repeat(blocks, axis=0) for kind, times in self._by_lane.items()}
            if self.clocks is not None:
                self.clocks.expand(blocks)
            self._rows = blocks

    def select(self, rows: Array) -> RaceDetector:
        """Return the race check of the blocks ``rows``."""
        self._record_pending_loads()
        part = RaceDetector(self._units, None if self.clocks is None else self.clocks.select(rows))
        part._sources = self._sources
        index = rows if self._rows > 1 else np.zeros(1, int)
        part._rows = len(index)
        part._touched = {kind: touched.map(lambda array: array[index]) for kind, touched in self._touched.items()}
        part._by_lane = {kind: times[index] for kind, times in self._by_lane.items()}
        return part

    def reset_blocks(self, rows: Array | None) -> None:
        """Forget the accesses of the blocks in ``rows``, which have synchronized; None: of all blocks."""
        if rows is None:
            self._touched.clear()
            self._pending_loads.clear()
        self._record_pending_loads()
        for touched in self._touched.values():
            touched.first[rows], touched.last[rows] = _NO_THREAD, -1
        if self.clocks is not None:
            self.clocks.order_block(rows)

    def record_access(
        self, kind: str, row: Array, thread: Array, cells: Array, source: Source, stored: StoredValues | None, *,
        acquires: bool,
    ) -> Race | None:  # fmt: skip
        """Record an instruction's accesses; return a race with an earlier instruction, else one among these, or None.

        ``row`` and ``thread`` have one element per access, ``cells`` are `Places.cells`. The threads of a row are
        ascending. With ``stored`` values, a store that does not change memory races only with atomics. Stores of equal
        values by one instruction do not race with each other. An access that ``acquires`` is ordered after the accesses
        that precede the writes whose values it reads.
        """
        is_deferred = kind == "load" and self.clocks is None
        if not is_deferred or len(self._pending_loads) * cells.size > _MAX_PENDING:
            self._record_pending_loads()
        self._source_index = self._sources.setdefault(source, len(self._sources))
        thread_number = spread(thread[:, None].astype(np.int32), cells.shape)
        ordered = None
        if self.clocks is not None:
            self.clocks.clock.tick()
            ordered = self.clocks.find_ordered_times(row, thread)
            if acquires or kind == "atomic":
                times = self._find_write_times(cells, thread_number, is_atomic=kind == "atomic")
                self.clocks.observe(row, thread, times, is_ordering=acquires)
        earlier_race = self._find_earlier_race(kind, cells, thread_number, ordered, stored)
        if is_deferred:
            self._pending_loads.append((cells, thread_number, self._source_index))
            return earlier_race
        self._update_last_accesses(kind, cells, thread_number, ordered)
        store_race = self._find_store_race(cells, thread_number, stored) if kind == "store" else None
        return store_race if earlier_race is None else earlier_race

    def _record_pending_loads(self) -> None:
        for cells, thread, source_index in self._pending_loads:
            self._source_index = source_index
            self._update_last_accesses("load", cells, thread, None)
        self._pending_loads.clear()

    def _find_write_times(self, cells: Array, thread: Array, *, is_atomic: bool) -> Array:
        """Return the time of another thread's last strong write that each access reads; 0 if there is none.

        Atomics of one instruction to the same address read each other's writes.
        """
        times = np.zeros(len(cells), np.int32)
        for kind in ("strong store", "volatile store", "atomic"):
            if kind in self._touched:
                touched = self._touched[kind].map(lambda array: array.ravel()[cells])
                is_foreign = (touched.first != thread) | (touched.last != thread)
                times = np.maximum(times, np.where(is_foreign, touched.time, 0).max(axis=1))
        if is_atomic and self.clocks is not None:
            _, group, counts = np.unique(cells[:, 0], return_inverse=True, return_counts=True)
            times[counts[group.ravel()] > 1] = self.clocks.clock.now - 1
        return times

    def _find_earlier_race(
        self, kind: str, cells: Array, thread: Array, ordered: OrderedTimes | None, stored: StoredValues | None
    ) -> Race | None:
        for earlier_kind in CONFLICTING_KINDS[kind]:
            if earlier_kind not in self._touched:
                continue
            touched = self._touched[earlier_kind].map(np.ravel)
            first, last = touched.first[cells], touched.last[cells]
            races = first <= last
            if earlier_kind not in self._by_lane:
                races &= (first != thread) | (last != thread)
            if not races.any():
                continue
            times, source_index = touched.time[cells], touched.source[cells]
            if earlier_kind in self._by_lane and ordered is not None:
                first, last, races = self._compare_lanes(earlier_kind, cells, thread, ordered.lanes, (first, last))
                races &= times > ordered.block
            elif ordered is not None:
                races &= ~_is_ordered(first, last, times, thread, ordered)
            if kind.startswith("volatile") and earlier_kind.startswith("volatile"):
                in_warp = [(other != thread) & (other // LANES == thread // LANES) for other in (first, last)]
                races &= in_warp[0] | in_warp[1]
            if races.any() and stored is not None and earlier_kind != "atomic":
                races &= ~stored.changes_nothing()[:, None]
            if races.any():
                at = find_first(races)
                return self._make_race(at, first[at], last[at], thread[at], source_index[at])
        return None

    def _make_race(self, at: tuple[int, ...], first: int, last: int, thread: int, source_index: int) -> Race:
        other = first if first != thread else last
        return Race(at[0], int(other), [*self._sources][int(source_index)])

    def _compare_lanes(
        self, earlier_kind: str, cells: Array, thread: Array, ordered_times: Array, extremes: tuple[Array, Array]
    ) -> tuple[Array, Array, Array]:
        """Return the lowest and the highest earlier thread of each unit, and the mask of accesses that may race.

        If both are in the warp of the access, both results are the lowest lane that no barrier orders before it.
        """
        first, last = extremes
        warp = thread // LANES
        races = (first <= last) & ((first // LANES != warp) | (last // LANES != warp))
        same_warp = np.nonzero((first <= last) & ~races)
        is_unordered = self._by_lane[earlier_kind].reshape(-1, LANES)[cells[same_warp]] > ordered_times[same_warp[0]]
        is_unordered[np.arange(len(is_unordered)), thread[same_warp] % LANES] = False
        first, last = first.copy(), last.copy()
        first[same_warp] = last[same_warp] = warp[same_warp] * LANES + is_unordered.argmax(axis=1)
        races[same_warp] = is_unordered.any(axis=1)
        return first, last, races

    def _update_last_accesses(self, kind: str, cells: Array, thread: Array, ordered: OrderedTimes | None) -> None:
        """Record the threads of an access, next to those of earlier accesses that are not ordered before it."""
        if kind not in self._touched:
            shape = (self._rows, self._units)
            self._touched[kind] = _LastAccesses(*(np.full(shape, value, np.int32) for value in (_NO_THREAD, -1, 0, 0)))
        first, last, times, source_index = self._touched[kind].map(np.ravel)
        old_first, old_last = first[cells], last[cells]
        if ordered is not None and self.clocks is not None:
            # With a clock per lane, `_by_lane` keeps the accesses of the own warp: drop them here.
            if self.clocks.is_by_lane:
                ordered = ordered._replace(lanes=_ALWAYS)
            is_ordered = _is_ordered(old_first, old_last, times[cells], thread, ordered)
            old_first, old_last = np.where(is_ordered, _NO_THREAD, old_first), np.where(is_ordered, -1, old_last)
            times[cells] = self.clocks.clock.now
            if self.clocks.is_by_lane:
                if kind not in self._by_lane:
                    self._by_lane[kind] = np.zeros((self._rows, self._units, LANES), np.int32)
                self._by_lane[kind].reshape(-1, LANES)[cells, thread % LANES] = self.clocks.clock.now
        # If several threads access one unit, NumPy keeps the last assignment: of the highest thread, or in reverse
        # order of the lowest. The copies are needed: NumPy iterates over a reversed view in memory order.
        last[cells] = np.maximum(old_last, thread)
        first[cells[::-1].copy()] = np.minimum(old_first, thread)[::-1].copy()
        source_index[cells] = self._source_index

    def _find_store_race(self, cells: Array, thread: Array, stored: StoredValues | None) -> Race | None:
        """Return a race between stores of this instruction, or None; `_update_last_accesses` must precede."""
        first, last = self._touched["store"].first.ravel(), self._touched["store"].last.ravel()
        races = (first[cells] != thread) | (last[cells] != thread)
        if races.any() and stored is not None:
            races &= ~stored.all_agree()[:, None]
        if not races.any():
            return None
        at = find_first(races)
        return self._make_race(at, first[cells[at]], last[cells[at]], thread[at], self._source_index)


def _is_ordered(first: Array, last: Array, times: Array, thread: Array, ordered: OrderedTimes) -> Array:
    """Tell for each access if barriers order the recorded accesses, by threads ``first`` to ``last``, before it."""
    warp = thread // LANES
    is_same_warp = (first // LANES == warp) & (last // LANES == warp)
    return np.asarray((times <= ordered.block) | is_same_warp & (times <= ordered.lanes))
