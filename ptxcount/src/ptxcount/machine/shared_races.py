"""Races in shared memory: who has touched what since the last barrier.

Two threads race if they access the same byte, at least one of them writes, and not both accesses are atomic. A barrier
of the block between the accesses prevents that, and so does ``bar.warp.sync`` between threads of one warp (PTX memory
consistency model, 8.9). For each byte and kind of access it is enough to keep the first and the last thread that
touched it: a thread conflicts with another exactly if one of these two is not itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..lanes.warps import LANES, Array, spread
from ..util.errors import Source

#: The kinds of access that an access of one kind must not meet.
CONFLICTS = {"load": ("store", "atomic"), "store": ("load", "store", "atomic"), "atomic": ("load", "store")}
_NOBODY = np.int32(32767)


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

    def __init__(self, units: int) -> None:
        self._units, self._rows = units, 1
        #: First and last thread, the warp's last epoch and the line, (4, rows, units), of each kind of access.
        self._touched: dict[str, Array] = {}
        self._warp_epochs: Array | None = None
        self._sources: dict[Source, int] = {}
        self._now = 0

    def expand(self, blocks: int) -> None:
        """Keep one row for each block from now on."""
        if self._rows == 1 < blocks:
            self._touched = {kind: touched.repeat(blocks, axis=1) for kind, touched in self._touched.items()}
            if self._warp_epochs is not None:
                self._warp_epochs = self._warp_epochs.repeat(blocks, axis=0)
            self._rows = blocks

    def select(self, rows: Array) -> RaceDetector:
        """The detector of some of the blocks."""
        part = RaceDetector(self._units)
        part._sources = self._sources
        index = rows if self._rows > 1 else np.zeros(1, int)
        part._rows = len(index)
        part._touched = {kind: touched.take(index, axis=1) for kind, touched in self._touched.items()}
        part._warp_epochs = None if self._warp_epochs is None else self._warp_epochs[index]
        return part

    def barrier(self, rows: Array | None) -> None:
        """A barrier of the blocks in ``rows``, or of all: what was touched before is forgotten."""
        if rows is None:
            self._touched.clear()
        for touched in self._touched.values():  # an empty interval: nobody
            touched[0, rows], touched[1, rows] = _NOBODY, -1

    def warp_barrier(self, warps: Array) -> None:
        """A barrier of the warps in a mask (1 or blocks, warps)."""
        if self._warp_epochs is None:
            self._warp_epochs = np.zeros((self._rows, warps.shape[1]), np.int32)
        self._warp_epochs = self._warp_epochs + warps

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
        epoch = None
        if self._warp_epochs is not None:
            rows = row if len(self._warp_epochs) > 1 else 0
            epoch = spread(self._warp_epochs[rows, thread // LANES][:, None], flat.shape)
        race = self._meets(kind, flat, me, epoch, stored)
        again = self._record(kind, flat, me, epoch, stored)
        return again if race is None else race

    def _meets(
        self, kind: str, flat: Array, me: Array, epoch: Array | None, stored: Stored | None
    ) -> tuple[int, int, Source] | None:
        """The first of some accesses that races with an earlier one, and the other thread."""
        for other in CONFLICTS[kind]:
            if other in self._touched:
                first, last = (each.reshape(-1)[flat] for each in self._touched[other][:2])
                foreign = (first <= last) & ((first != me) | (last != me))
                if not foreign.any():
                    continue
                when, by = (each.reshape(-1)[flat] for each in self._touched[other][2:])
                if epoch is not None:
                    foreign &= ~_before(first, last, when, me, epoch)
                if foreign.any() and stored is not None and other != "atomic":
                    foreign &= ~stored.held()[:, None]
                if foreign.any():
                    access, place = (int(axis[0]) for axis in np.nonzero(foreign))
                    somebody = first if first[access, place] != me[access, place] else last
                    return access, int(somebody[access, place]), [*self._sources][int(by[access, place])]
        return None

    def _record(
        self, kind: str, flat: Array, me: Array, epoch: Array | None, stored: Stored | None
    ) -> tuple[int, int, Source] | None:
        """Keep who touched what; of stores, the first that races with another of the same instruction."""
        if kind not in self._touched:
            nobody = np.array([_NOBODY, -1, 0, 0], np.int32)[:, None, None]
            self._touched[kind] = np.broadcast_to(nobody, (4, self._rows, self._units)).copy()
        first, last, when, by = (each.reshape(-1) for each in self._touched[kind])
        old_first, old_last = first[flat], last[flat]
        if epoch is not None:
            over = _before(old_first, old_last, when[flat], me, epoch)
            old_first, old_last = np.where(over, _NOBODY, old_first), np.where(over, -1, old_last)
            when[flat] = epoch
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


def _before(first: Array, last: Array, when: Array, me: Array, epoch: Array) -> Array:
    """Whether all earlier accesses were in the thread's own warp, before its last ``bar.warp.sync``."""
    warp = me // LANES
    return np.asarray((first // LANES == warp) & (last // LANES == warp) & (when < epoch))
