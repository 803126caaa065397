"""Races in shared memory: who has touched what since the last barrier.

Two threads race if they access the same byte, at least one of them writes, and not both accesses are atomic. A barrier
of the block between the accesses prevents that, and so does ``bar.warp.sync`` between lanes of its mask (PTX memory
consistency model, 8.9). For each byte and kind of access it is enough to keep the first and the last thread that
touched it: a thread conflicts with another exactly if one of these two is not itself. Where masks are not of whole
warps, each lane's last access is kept as well, and compared with what the lanes know of each other (`warp_clocks`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..lanes.warps import LANES, Array, spread
from ..util.errors import Source
from .warp_clocks import WarpClocks

#: The kinds of access that an access of one kind must not meet.
CONFLICTS = {"load": ("store", "atomic"), "store": ("load", "store", "atomic"), "atomic": ("load", "store")}
_NOBODY = np.int32(32767)
#: A time that is later than any.
_ALWAYS = np.full((1, 1), np.iinfo(np.int32).max, np.int32)


class Stored(NamedTuple):
    """What a store writes, looked at only where its threads meet others."""

    #: Shared memory in elements.
    data: Array
    #: The first element of each access: (blocks, threads), or (1, accesses).
    places: Array
    #: Its elements, of the same shape.
    values: list[Array]
    #: One row of accesses stands for all blocks.
    one_row: bool

    def held(self) -> Array:
        """Whether memory holds what each access stores, before any of them."""
        return self._each([self.data[self.places + k] == value for k, value in enumerate(self.values)])

    def agreed(self) -> Array:
        """Whether all accesses to the place of each access store the same."""
        _, first, which = np.unique(self.places[0], return_index=True, return_inverse=True)
        odd = ~np.logical_and.reduce([value[:, first[which]] == value for value in self.values])
        disputed = np.zeros((len(odd), len(first)), bool)
        row, access = np.nonzero(odd)
        disputed[row, which[access]] = True
        return self._each([~disputed[:, which]])

    def _each(self, equal: list[Array]) -> Array:
        every = np.logical_and.reduce(equal)
        return np.asarray(every.all(axis=0) if self.one_row else every.ravel())


class RaceDetector:
    """Watches the shared memory of the blocks of a chunk.

    One row stands for all blocks while all of them do the same. Later each has its own.
    """

    def __init__(self, units: int, clocks: WarpClocks | None) -> None:
        self._units, self._rows = units, 1
        #: The order within warps; None without any barrier of warps.
        self.clocks = clocks
        #: First and last thread, the time and the line of the last access, (4, rows, units), of each kind of access.
        self._touched: dict[str, Array] = {}
        #: The time of each lane's last access, (rows, units, 32), of each kind of access.
        self._by_lane: dict[str, Array] = {}
        self._sources: dict[Source, int] = {}
        self._now = 0

    def expand(self, blocks: int) -> None:
        """Keep one row for each block from now on."""
        if self._rows == 1 < blocks:
            self._touched = {kind: touched.repeat(blocks, axis=1) for kind, touched in self._touched.items()}
            self._by_lane = {kind: times.repeat(blocks, axis=0) for kind, times in self._by_lane.items()}
            if self.clocks is not None:
                self.clocks.expand(blocks)
            self._rows = blocks

    def select(self, rows: Array) -> RaceDetector:
        """The detector of some of the blocks."""
        part = RaceDetector(self._units, None if self.clocks is None else self.clocks.select(rows))
        part._sources = self._sources
        index = rows if self._rows > 1 else np.zeros(1, int)
        part._rows = len(index)
        part._touched = {kind: touched.take(index, axis=1) for kind, touched in self._touched.items()}
        part._by_lane = {kind: times[index] for kind, times in self._by_lane.items()}
        return part

    def barrier(self, rows: Array | None) -> None:
        """A barrier of the blocks in ``rows``, or of all: what was touched before is forgotten."""
        if rows is None:
            self._touched.clear()
        for touched in self._touched.values():  # an empty interval: nobody
            touched[0, rows], touched[1, rows] = _NOBODY, -1
        if self.clocks is not None:
            self.clocks.order_block(rows)

    def touch(
        self, kind: str, row: Array, thread: Array, unit: Array, source: Source, stored: Stored | None = None
    ) -> tuple[int, int, Source] | None:
        """Record accesses: rows, threads in ascending order, and units (accesses, units an access); stores with values.

        A store of what everybody else stores there, or of what is there already, changes nothing for anybody: it races
        with no load and with no other store. Gives the first access that races, the other thread, and its line.
        """
        self._now = self._sources.setdefault(source, len(self._sources))
        flat = row[:, None] * self._units + unit
        me = spread(thread[:, None].astype(np.int32), flat.shape)
        known = None
        if self.clocks is not None:
            self.clocks.clock.tick()
            known = self.clocks.known_of(row, thread)
        race = self._meets(kind, flat, me, known, stored)
        again = self._record(kind, flat, me, known, stored)
        return again if race is None else race

    def _meets(
        self, kind: str, flat: Array, me: Array, known: Array | None, stored: Stored | None
    ) -> tuple[int, int, Source] | None:
        """The first of some accesses that races with an earlier one, and the other thread."""
        for other in CONFLICTS[kind]:
            if other in self._touched:
                first, last = (each.reshape(-1)[flat] for each in self._touched[other][:2])
                foreign = first <= last
                if other not in self._by_lane:
                    foreign &= (first != me) | (last != me)
                if not foreign.any():
                    continue
                when, by = (each.reshape(-1)[flat] for each in self._touched[other][2:])
                if other in self._by_lane and known is not None:
                    first, last, foreign = self._look_at_lanes(other, flat, me, known, (first, last))
                elif known is not None:
                    foreign &= ~_before(first, last, when, me, known)
                if foreign.any() and stored is not None and other != "atomic":
                    foreign &= ~stored.held()[:, None]
                if foreign.any():
                    access, place = (int(axis[0]) for axis in np.nonzero(foreign))
                    somebody = first if first[access, place] != me[access, place] else last
                    return access, int(somebody[access, place]), [*self._sources][int(by[access, place])]
        return None

    def _look_at_lanes(
        self, other: str, flat: Array, me: Array, known: Array, others: tuple[Array, Array]
    ) -> tuple[Array, Array, Array]:
        """The first and the last thread that no barrier orders before each access, and whether there are any."""
        first, last = others
        warp = me // LANES
        foreign = (first <= last) & ((first // LANES != warp) | (last // LANES != warp))
        near = np.nonzero((first <= last) & ~foreign)
        after = self._by_lane[other].reshape(-1, LANES)[flat[near]] > known[near[0]]
        after[np.arange(len(after)), me[near] % LANES] = False
        first, last = first.copy(), last.copy()
        first[near] = last[near] = warp[near] * LANES + after.argmax(axis=1)
        foreign[near] = after.any(axis=1)
        return first, last, foreign

    def _record(
        self, kind: str, flat: Array, me: Array, known: Array | None, stored: Stored | None
    ) -> tuple[int, int, Source] | None:
        """Keep who touched what; of stores, the first that races with another of the same instruction."""
        if kind not in self._touched:
            nobody = np.array([_NOBODY, -1, 0, 0], np.int32)[:, None, None]
            self._touched[kind] = np.broadcast_to(nobody, (4, self._rows, self._units)).copy()
        first, last, when, by = (each.reshape(-1) for each in self._touched[kind])
        old_first, old_last = first[flat], last[flat]
        if known is not None and self.clocks is not None:
            # What lanes of the own warp did before is kept by lane, if at all.
            over = _before(old_first, old_last, when[flat], me, _ALWAYS if self.clocks.by_lane else known)
            old_first, old_last = np.where(over, _NOBODY, old_first), np.where(over, -1, old_last)
            when[flat] = self.clocks.clock.now
            if self.clocks.by_lane:
                if kind not in self._by_lane:
                    self._by_lane[kind] = np.zeros((self._rows, self._units, LANES), np.int32)
                self._by_lane[kind].reshape(-1, LANES)[flat, me % LANES] = self.clocks.clock.now
        # Where several threads name one unit, NumPy keeps the last: the greatest here, the least in reverse (as
        # a copy: NumPy would walk through a reversed view in the order of memory).
        last[flat] = np.maximum(old_last, me)
        first[flat[::-1].copy()] = np.minimum(old_first, me)[::-1].copy()
        by[flat] = self._now
        if kind == "store":
            clash = (first[flat] != me) | (last[flat] != me)
            if clash.any() and stored is not None:
                clash &= ~stored.agreed()[:, None]
            if clash.any():
                access, place = (int(axis[0]) for axis in np.nonzero(clash))
                one, two = int(first[flat[access, place]]), int(last[flat[access, place]])
                return access, two if one == int(me[access, place]) else one, [*self._sources][self._now]
        return None


def _before(first: Array, last: Array, when: Array, me: Array, known: Array) -> Array:
    """Whether all earlier accesses were in the thread's own warp, at times that it knows."""
    warp = me // LANES
    return np.asarray((first // LANES == warp) & (last // LANES == warp) & (when <= known))
