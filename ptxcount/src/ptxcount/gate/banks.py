"""Bank conflicts, and the padding of rows that would free them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..transactions import WORD, served_groups, wavefronts
from .patterns import Pattern

Array = npt.NDArray[Any]
#: Rows shorter than this are no rows of a tile.
_ROW = 32


def text(one: Pattern, every: Sequence[Pattern]) -> str:
    """What a conflict comes from; ``every`` are all accesses to shared memory."""
    access = one.access
    now, free = (count / access.requests for count in (access.wavefronts, access.conflict_free))
    head = f"{access.kind} of shared memory: {now:.3g} wavefronts a request, {free:.3g} without bank conflicts"
    if one.lane:
        head += f"; neighbouring lanes are {one.stride / WORD:g} words apart"
    found = padding(one, every)
    if found is None:
        return f"{head}: let neighbouring lanes touch neighbouring words"
    pitch, pad = found
    return f"{head}: rows of {pitch} bytes padded by {pad} bytes are free of them"


def padding(one: Pattern, every: Sequence[Pattern]) -> tuple[int, int] | None:
    """A row's bytes and those to add, so that this access has no conflicts and the others no more than now."""
    extents = {each: (int(each.rows[each.lanes].min()), int(each.rows[each.lanes].max())) for each in every}
    low, high = extents[one]
    tile = [each for each in every if extents[each][0] <= high and extents[each][1] >= low]
    base = min(extents[each][0] for each in tile)
    unit = max(WORD, *(each.access.width for each in tile))
    for pitch in _pitches(one):
        for pad in (unit, 2 * unit, 4 * unit):
            padded = [_conflicts(each, base, pitch, pad) for each in tile]
            before = [_conflicts(each, base, pitch, 0) for each in tile]
            if padded[tile.index(one)] == 0 and sum(padded) <= sum(before) - before[tile.index(one)]:
                return pitch, pad
    return None


def _pitches(one: Pattern) -> Iterator[int]:
    """Distances of neighbouring lanes that may be those of rows: as they are, and without a step along the row."""
    apart = np.abs(np.diff(one.rows, axis=1)[one.lanes[:, 1:] & one.lanes[:, :-1]])
    values, counts = np.unique(apart, return_counts=True)
    usual = [int(value) for value in values[np.argsort(-counts, kind="stable")][:4]]
    width = one.access.width
    for pitch in dict.fromkeys([*usual, *(each - width for each in usual), *(each + width for each in usual)]):
        if pitch >= _ROW:
            yield pitch


def _conflicts(one: Pattern, base: int, pitch: int, pad: int) -> float:
    moved = one.rows + (one.rows - base) // pitch * pad
    rows, width = np.where(one.lanes, moved, moved[:, :1] * 0), one.access.width
    excess = wavefronts(rows, one.lanes, width) - served_groups(rows, one.lanes, width)
    return float(excess.mean()) * one.access.requests
