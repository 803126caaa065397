"""Races between blocks of a cluster in distributed shared memory.

Two blocks race if two of their threads would race in one block (`shared_races`). A cluster barrier between the accesses
prevents that. So does a wait at an ``mbarrier``, an atomic or a strong load, but not a block barrier. For each unit and
access kind, the check keeps two accesses: the last by the block that owns the unit, and the last by another block.
"""

from __future__ import annotations

import numpy as np

from ..lanes.warps import Array, find_first, spread
from ..util.errors import Source
from .shared_races import CONFLICTING_KINDS, Race, StoredValues

#: Indices of the record of a unit: times of the last access by its owner and by another block, this other block, and
#: the source lines of both accesses.
_OWN_TIME, _FAR_TIME, _FAR_BLOCK, _OWN_LINE, _FAR_LINE = range(5)


class ClusterRaces:
    """Race check for distributed shared memory, with ``units`` of bytes per block."""

    def __init__(self, blocks: int, units: int) -> None:
        self._units, self._now = units, 0
        #: The time up to which accesses of other blocks are ordered before each block.
        self._ordered = np.zeros(blocks, np.int32)
        #: Records of the last accesses, (5, blocks, units), by access kind.
        self._touched: dict[str, Array] = {}
        self._sources: dict[Source, int] = {}

    def order_blocks(self, rows: Array | None) -> None:
        """Order the blocks ``rows`` after all earlier accesses; None: all blocks."""
        self._ordered[slice(None) if rows is None else rows] = self._now

    def record_access(
        self, kind: str, owner: Array, block: Array, cells: Array, source: Source, stored: StoredValues | None
    ) -> Race | None:
        """Record the accesses of an instruction; return a race with another block, or None.

        Each access is by a ``block`` to the memory of an ``owner``; ``cells`` are `Places.cells`. With
        ``stored`` values, a store that does not change memory races only with atomics.
        """
        self._now += 1
        line = self._sources.setdefault(source, len(self._sources))
        blocks, owners = (spread(rows[:, None], cells.shape) for rows in (block, owner))
        race = None
        for earlier_kind in CONFLICTING_KINDS[kind]:
            if earlier_kind in self._touched and race is None:
                race = self._find_earlier_race(earlier_kind, cells, blocks, owners, stored)
        if kind not in self._touched:
            self._touched[kind] = np.zeros((5, len(self._ordered), self._units), np.int32)
        last = self._touched[kind].reshape(5, -1)
        own = blocks == owners
        last[_OWN_TIME, cells[own]], last[_OWN_LINE, cells[own]] = self._now, line
        last[_FAR_TIME, cells[~own]], last[_FAR_LINE, cells[~own]] = self._now, line
        last[_FAR_BLOCK, cells[~own]] = blocks[~own]
        if kind == "store" and race is None:
            race = self._find_store_race(last[:, cells], blocks, stored)
        return race

    def _find_earlier_race(
        self, earlier_kind: str, cells: Array, blocks: Array, owners: Array, stored: StoredValues | None
    ) -> Race | None:
        earlier = self._touched[earlier_kind].reshape(5, -1)[:, cells]
        ordered = self._ordered[blocks]
        by_owner = (blocks != owners) & (earlier[_OWN_TIME] > ordered)
        races = by_owner | ((earlier[_FAR_TIME] > ordered) & (earlier[_FAR_BLOCK] != blocks))
        if races.any() and stored is not None and earlier_kind != "atomic":
            races &= ~stored.changes_nothing()[:, None]
        if not races.any():
            return None
        at = find_first(races)
        other, line = (owners[at], _OWN_LINE) if by_owner[at] else (earlier[_FAR_BLOCK][at], _FAR_LINE)
        return Race(at[0], int(other), [*self._sources][int(earlier[line][at])])

    def _find_store_race(self, last: Array, blocks: Array, stored: StoredValues | None) -> Race | None:
        """Return a race between stores of this instruction by two blocks; else None.

        With ``stored`` values, only stores of different values race.
        """
        races = (last[_FAR_TIME] == self._now) & (last[_FAR_BLOCK] != blocks)
        if races.any() and stored is not None:
            races &= ~stored.all_agree()[:, None]
        if not races.any():
            return None
        at = find_first(races)
        return Race(at[0], int(last[_FAR_BLOCK][at]), [*self._sources][int(last[_FAR_LINE][at])])
