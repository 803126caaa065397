"""Races in global memory: two threads access one address without synchronization, and one of them writes.

A barrier of a block or cluster orders its blocks after all earlier accesses of the launch. So does a wait of any thread
of the block at an mbarrier, an atomic, or a strong load (volatile, relaxed or acquire). ``bar.warp.sync`` orders the
lanes of its mask. If several threads read an address, the check keeps only the time of the last read. The check misses
races

- of a block that executes one of these instructions without synchronizing by it,
- between a strong and a weak access, except a strong write and a load that ends a loop,
- of other instructions than loads, stores and atomics, such as textures, asynchronous copies and tensor cores,
- between stores to an array that the kernel only writes, except the threads of one store in the first 16 stores; the
  strict check misses none of these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..lanes.warps import LANES, Array, find_first
from ..util.errors import Source
from ..util.grammar import count_noun

#: The record of an access is its time, shifted by 32 bits, and the number of its thread in the bits below.
_TIME, _THREAD = 32, (1 << 32) - 1
#: Stands for the number of the thread, if several threads have read a unit.
_SEVERAL_THREADS = _THREAD
#: Is added to the number of the warp's first thread, if several threads of one warp have read a unit.
_WARP_LANES = 1 << 31


@dataclass(frozen=True)
class WarpOrder:
    """Order that warp barriers make between an access of some threads and earlier accesses of the same warps."""

    #: The lane of each thread, and the number of lanes in its warp.
    lanes: Array
    count: Array
    #: Times up to which accesses of each lane of the warp are ordered before each thread (`warp_clocks`): (threads,
    #: 32), or (threads, 1) if all lanes have the same time.
    ordered_times: Array

    def find_first_thread(self, thread: Array) -> Array:
        """Return the number of the first thread of each thread's warp, from the number of the thread."""
        return np.asarray(thread - self.lanes[:, None])

    def find_lane(self, other_thread: Array, thread: Array) -> tuple[Array, Array]:
        """Return the lane of ``other_thread`` in the warp of ``thread``, and the mask of lanes that this warp has."""
        lane = other_thread - self.find_first_thread(thread)
        return lane, (lane >= 0) & (lane < self.count[:, None])

    def is_ordered(self, other_thread: Array, times: Array, lane_bits: Array | None, thread: Array) -> Array:
        """Tell if warp barriers order the last access, at ``times``, before each thread.

        The last access is by ``other_thread``. If this is `_WARP_LANES` and the thread's warp, the last accesses are
        by the lanes in ``lane_bits``.
        """
        lane, inside = self.find_lane(other_thread, thread)
        is_warp = other_thread == (_WARP_LANES | self.find_first_thread(thread))
        if lane_bits is None:  # all lanes of a warp have the same times
            return np.asarray((inside | is_warp) & (times <= self.ordered_times))
        is_lane_ordered = times <= np.take_along_axis(self.ordered_times, np.where(inside, lane, 0), axis=1)
        is_unordered = np.zeros(other_thread.shape, bool)
        for index in range(LANES) if is_warp.any() else ():
            is_other_lane = (lane_bits >> np.uint32(index) & 1).astype(bool) & (self.lanes != index)[:, None]
            is_unordered |= is_other_lane & (times > self.ordered_times[:, index, None])
        return np.asarray(inside & is_lane_ordered | is_warp & ~is_unordered)


@dataclass(frozen=True)
class AccessEvent:
    """An access by one instruction of a chunk, with all facts that decide whether it races."""

    #: Time of the access; later accesses have greater times.
    time: int
    #: Number of each thread in the launch, from 1 on.
    threads: Array
    #: Time up to which all accesses are ordered before each thread's block.
    ordered: Array
    #: True if a store that does not change memory can race.
    strict: bool
    #: Source of each access, by its time.
    sources: Mapping[int, Source]
    #: Order by warp barriers and flags in shared memory; None if the kernel has neither.
    warp: WarpOrder | None


class AccessHistory:
    """Last reader and writer of each unit of an array; a unit has the size of the smallest access so far."""

    def __init__(self, data: Array, name: str) -> None:
        self._data, self._name, self._unit = data, name, 0
        #: Records of the last read and the last write of each unit; 0 if there is none.
        self._read = self._written = np.zeros(0, np.int64)
        #: The lanes of one warp that have read each unit, if there are several; None if lanes are not distinguished.
        self._lanes: Array | None = None

    def _find_units(self, index: Array, width: int) -> Array:
        """Return the units of accesses, (accesses, units per access); allocate or split the units if necessary."""
        if not self._unit:
            self._unit = width
            self._read, self._written = (np.zeros(-(-self._data.size // width), np.int64) for _ in range(2))
        if width < self._unit:
            parts, self._unit = self._unit // width, width
            self._read, self._written = self._read.repeat(parts), self._written.repeat(parts)
            self._lanes = None if self._lanes is None else self._lanes.repeat(parts)
        units_per_access = width // self._unit
        return np.asarray(index[:, None] * units_per_access + np.arange(units_per_access))

    def record_load(self, index: Array, width: int, event: AccessEvent) -> tuple[int, str] | None:
        """Record a load of ``width`` bytes by some threads; return index and message of the first race, or None.

        Each element of ``index`` is the index of a thread's access, in an array of elements of this width.
        """
        units = self._find_units(index, width)
        thread = event.threads[:, None]
        last_write = self._written[units]
        races = self._is_unordered(last_write, thread, event)
        race = self._describe_race(races, units, width, "load", "writes", event, last_write)
        last_read, new_read = self._read[units], np.broadcast_to(thread | event.time << _TIME, units.shape)
        self._read[units] = new_read
        # If several threads of this load read a unit, NumPy keeps one of them.
        is_shared = self._read[units] != new_read
        is_shared |= self._is_unordered(last_read, thread, event, self._find_lane_bits(units))
        if event.warp is not None and is_shared.any():
            is_shared = self._record_warp_read(units, last_read, is_shared, event, event.warp)
        self._read[units[is_shared]] = _SEVERAL_THREADS | event.time << _TIME
        return race

    def _find_lane_bits(self, units: Array) -> Array | None:
        return None if self._lanes is None else self._lanes[units]

    def _record_warp_read(
        self, units: Array, last_read: Array, is_shared: Array, event: AccessEvent, warp: WarpOrder
    ) -> Array:
        """Record the warps that have read units with several readers, and the lanes that have read each unit.

        ``is_shared`` is the mask of units with several readers. Return the mask of units with readers in several warps.
        """
        if warp.ordered_times.shape[1] > 1 and self._lanes is None:
            self._lanes = np.zeros(len(self._read), np.uint32)
        thread, reader, lane_bits = event.threads[:, None], last_read & _THREAD, self._find_lane_bits(units)
        warp_reader = np.broadcast_to(_WARP_LANES | warp.find_first_thread(thread), units.shape)
        last_lane, is_same_warp = warp.find_lane(reader, thread)
        has_warp_record = reader == warp_reader  # several lanes of this warp have read the unit before
        is_unordered = self._is_unordered(last_read, thread, event, lane_bits)
        warp_read = warp_reader | event.time << _TIME
        thread_read = self._read[units]
        self._read[units] = warp_read  # only for the comparison: NumPy keeps one of several warps
        is_of_several_warps = self._read[units] != warp_read
        is_of_several_warps |= is_unordered & ~is_same_warp & ~has_warp_record
        self._read[units] = thread_read
        self._read[units[is_shared]] = warp_read[is_shared]
        if self._lanes is not None and lane_bits is not None:
            one = np.uint32(1)
            last_bit = np.where(is_same_warp, one << (last_lane % LANES).astype(np.uint32), 0)
            earlier_bits = np.where(is_unordered, np.where(has_warp_record, lane_bits, last_bit), 0)
            own_bit = one << warp.lanes[:, None].astype(np.uint32)
            self._lanes[units] = 0
            np.bitwise_or.at(self._lanes, units, earlier_bits.astype(np.uint32) | own_bit)
        return np.asarray(is_of_several_warps)

    def record_strong_write(
        self, index: Array, width: int, values: Sequence[Array], cells: Array, event: AccessEvent
    ) -> None:
        """Record strong writes that change memory: ``values`` and ``cells`` are before and after, in either order.

        The writes themselves race with nothing, only later weak loads race with them.
        """
        changed = np.flatnonzero(_find_changes(index, values, cells))
        units = self._find_units(index[changed], width)
        self._written[units] = np.broadcast_to(event.threads[changed, None] | event.time << _TIME, units.shape)

    def record_store(
        self, index: Array, width: int, values: Sequence[Array], cells: Array, event: AccessEvent
    ) -> tuple[int, str] | None:
        """Record a store of ``values`` before memory, ``cells``, changes; return a race as `record_load` does."""
        units, thread = self._find_units(index, width), event.threads[:, None]
        last_read, last_write = self._read[units], self._written[units]
        races_read = self._is_unordered(last_read, thread, event, self._find_lane_bits(units))
        races_write = self._is_unordered(last_write, thread, event)
        if not event.strict:  # a store that changes nothing does not race
            changes = _find_changes(index, values, cells)[:, None]
            races_read, races_write = races_read & changes, races_write & changes
        self._written[units] = np.broadcast_to(thread | event.time << _TIME, units.shape)
        # If several threads of this store write a unit, NumPy keeps one of them.
        is_disputed = (self._written[units] & _THREAD) != thread
        if is_disputed.any() and not event.strict:  # stores of equal values do not race
            _, first_access, group = np.unique(index, return_index=True, return_inverse=True)
            differs = np.logical_or.reduce([value != value[first_access][group.ravel()] for value in values])
            is_disputed &= np.isin(index, index[differs])[:, None]
        race = self._describe_race(is_disputed, units, width, "store", "writes", event)
        race = race or self._describe_race(races_write, units, width, "store", "writes", event, last_write)
        return race or self._describe_race(races_read, units, width, "store", "reads", event, last_read)

    @staticmethod
    def _is_unordered(last_access: Array, thread: Array, event: AccessEvent, lane_bits: Array | None = None) -> Array:
        """Tell if another thread made the last access to a unit, and no synchronization orders it before this one."""
        other_thread, times = last_access & _THREAD, last_access >> _TIME
        is_unordered = np.asarray((last_access != 0) & (other_thread != thread) & (times > event.ordered[:, None]))
        if event.warp is None or not is_unordered.any():
            return is_unordered
        if lane_bits is None and event.warp.ordered_times.shape[1] > 1:
            lane_bits = np.zeros(other_thread.shape, np.uint32)
        return is_unordered & ~event.warp.is_ordered(other_thread, times, lane_bits, thread)

    def _describe_race(
        self,
        races: Array,
        units: Array,
        width: int,
        kind: str,
        verb: str,
        event: AccessEvent,
        last_access: Array | None = None,
    ) -> tuple[int, str] | None:
        """Return the index of the first access in the mask ``races``, and a message; None if there is none."""
        if not races.any():
            return None
        access, unit = find_first(races)
        byte = int(units[access, unit]) * self._unit
        text = f"{kind} of {count_noun(width, 'byte')} at byte {byte} of {self._name}"
        text += f", which another thread {verb} without synchronization"
        if last_access is not None:
            text += f", at {event.sources[int(last_access[access, unit]) >> _TIME]}"
        return access, text


def _find_changes(index: Array, values: Sequence[Array], cells: Array) -> Array:
    """Tell for each access if its memory, ``cells``, differs from ``values``."""
    first = index * len(values)
    return np.asarray(np.logical_or.reduce([cells[first + k] != value for k, value in enumerate(values)]))
