"""Races between blocks of a cluster in distributed shared memory.

Accesses of two blocks to one address race as those of two threads do (`shared_races`), unless the blocks synchronize in
between. They do so by a cluster barrier, a wait at an ``mbarrier``, an atomic, or a polling load, but not by a block
barrier. For each unit and access kind, the check keeps two accesses: the last by the block that owns the unit, and the
last by another block.
"""

from __future__ import annotations

import numpy as np

from ..lanes.warps import Array, spread
from ..util.errors import Source
from .shared_races import CONFLICTING_KINDS, StoredValues

#: Record of each unit: times of the owner's and of another block's last access, that block, and both source lines.
_OWN_TIME, _FAR_TIME, _FAR_BLOCK, _OWN_LINE, _FAR_LINE = range(5)


class ClusterRaces:
    """Race check for distributed shared memory, with ``units`` of bytes per block."""

    def __init__(self, blocks: int, units: int) -> None:
        self._units, self._now = units, 0
        #: The time up to which accesses of other blocks are ordered before each block.
        self._ordered = np.zeros(blocks, np.int32)
        self._touched: dict[str, Array] = {}
        self._sources: dict[Source, int] = {}

    def select(self, rows: Array) -> ClusterRaces:
        """Return the race check of the blocks ``rows``, which are whole clusters."""
        part = ClusterRaces(len(rows), self._units)
        part._now, part._ordered, part._sources = self._now, self._ordered[rows], self._sources
        place = np.full(len(self._ordered), -1, np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        part._touched = {kind: touched.take(rows, axis=1) for kind, touched in self._touched.items()}
        for touched in part._touched.values():
            touched[_FAR_BLOCK] = place[touched[_FAR_BLOCK]]
        return part

    def order(self, rows: Array | None) -> None:
        """Order some blocks, or all, after all earlier accesses."""
        self._ordered[slice(None) if rows is None else rows] = self._now

    def record_access(
        self, kind: str, owner: Array, block: Array, unit: Array, source: Source, stored: StoredValues | None = None
    ) -> tuple[int, int, Source] | None:
        """Record the accesses of an instruction; return the first racing access, the other block, and its source.

        Each access is by a ``block`` to the memory of its ``owner``; ``unit`` is (accesses, units per access). Stores
        that do not change memory race only with atomics, as in `shared_races.RaceDetector.record_access`.
        """
        self._now += 1
        line = self._sources.setdefault(source, len(self._sources))
        flat = owner[:, None] * self._units + unit
        me, owners = (spread(rows[:, None], flat.shape) for rows in (block, owner))
        race = None
        for other in CONFLICTING_KINDS[kind]:
            if other in self._touched and race is None:
                race = self._find_race(other, flat, me, owners, stored)
        if kind not in self._touched:
            self._touched[kind] = np.zeros((5, len(self._ordered), self._units), np.int32)
        now = self._touched[kind].reshape(5, -1)
        own = me == owners
        now[_OWN_TIME, flat[own]], now[_OWN_LINE, flat[own]] = self._now, line
        now[_FAR_TIME, flat[~own]], now[_FAR_LINE, flat[~own]] = self._now, line
        now[_FAR_BLOCK, flat[~own]] = me[~own]
        if kind == "store" and race is None:
            race = self._find_clash(now[:, flat], me, stored)
        return race

    def _find_race(
        self, other: str, flat: Array, me: Array, owners: Array, stored: StoredValues | None
    ) -> tuple[int, int, Source] | None:
        """Find the first access that races with an earlier access of another block."""
        before = self._touched[other].reshape(5, -1)[:, flat]
        ordered = self._ordered[me]
        by_owner = (me != owners) & (before[_OWN_TIME] > ordered)
        races = by_owner | ((before[_FAR_TIME] > ordered) & (before[_FAR_BLOCK] != me))
        if races.any() and stored is not None and other != "atomic":
            races &= ~stored.changes_nothing()[:, None]
        if not races.any():
            return None
        at = tuple(int(axis[0]) for axis in np.nonzero(races))
        block, line = (owners[at], _OWN_LINE) if by_owner[at] else (before[_FAR_BLOCK][at], _FAR_LINE)
        return at[0], int(block), [*self._sources][int(before[line][at])]

    def _find_clash(self, now: Array, me: Array, stored: StoredValues | None) -> tuple[int, int, Source] | None:
        """Find the first store to a unit where a block that is not its owner stores by the same instruction.

        If ``stored`` is given, only stores of different values count. Return the access, that block and its source.
        """
        clash = (now[_FAR_TIME] == self._now) & (now[_FAR_BLOCK] != me)
        if clash.any() and stored is not None:
            clash &= ~stored.all_agree()[:, None]
        if not clash.any():
            return None
        at = tuple(int(axis[0]) for axis in np.nonzero(clash))
        return at[0], int(now[_FAR_BLOCK][at]), [*self._sources][int(now[_FAR_LINE][at])]
