"""Bank conflicts, and the padding of rows that would free them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..counting.transactions import BANKS, WORD, served_loads, served_stores
from ..report.patterns import Pattern

#: Rows shorter than this are no rows of a tile.
_ROW = 32
#: More bytes than lie between any two lanes.
_FAR = 1 << 40


def text(one: Pattern, every: Sequence[Pattern]) -> str:
    """What a conflict comes from; ``every`` are all accesses to shared memory."""
    access = one.access
    now, free = (count / access.requests for count in (access.wavefronts, access.conflict_free))
    head = f"{now:.3g} wavefronts a request, {free:.3g} without bank conflicts"
    if one.lane and one.stride > access.width:
        head += f"; neighbouring lanes are {one.stride / WORD:g} words apart"
    found = padding(one, every)
    if found is None:
        return f"{head}: let a warp touch {BANKS} words behind each other"
    pitch, pad, left = found
    return f"{head}: {pad} bytes of padding behind every {pitch} bytes would take {free + left / access.requests:.3g}"


def _tile(one: Pattern, every: Sequence[Pattern]) -> list[Pattern]:
    """The accesses to what an access reaches."""
    extents = {each: (int(each.rows[each.lanes].min()), int(each.rows[each.lanes].max())) for each in every}
    low, high = extents[one]
    return [each for each in every if extents[each][0] <= high and extents[each][1] >= low]


def padding(one: Pattern, every: Sequence[Pattern]) -> tuple[int, int, float] | None:
    """A row's bytes, those to add, and the conflicts then: the fewest of all accesses to the tile, at most half."""
    tile = _tile(one, every)
    base = min(int(each.rows[each.lanes].min()) for each in tile)
    unit = max(WORD, *(each.access.width for each in tile))
    found = []
    apart, known = np.diff(one.rows, axis=1), one.lanes[:, 1:] & one.lanes[:, :-1]
    least, most = (np.where(known, apart, end * _FAR) for end in (1, -1))
    if (least.min(axis=0) < most.max(axis=0)).any():  # another pattern each time: what the samples show is not all
        return None
    now = {each: _conflicts(each, base, _ROW, 0) for each in tile}
    for pitch in _pitches(one):
        for pad in (unit * factor for factor in (1, 2, 4, 8, 16)):
            padded = {each: _conflicts(each, base, pitch, pad) for each in tile}
            if sum(padded.values()) <= sum(now.values()) / 2 and padded[one] <= now[one] / 2:
                found.append((sum(padded.values()), pad, pitch, padded[one]))
    if not found:
        return None
    _, pad, pitch, left = min(found)
    return pitch, pad, left


def _pitches(one: Pattern) -> Iterator[int]:
    """What may be the bytes of a row: between lanes, and between the lanes that begin where others do not go on."""
    apart = np.diff(one.rows, axis=1)
    apart[~(one.lanes[:, 1:] & one.lanes[:, :-1])] = 0
    starts = []
    for row, jumps in zip(one.rows, apart, strict=True):
        begin = row[np.r_[0, 1 + np.flatnonzero((jumps != one.access.width) & (jumps != 0))]]
        starts.append(np.diff(begin))
    values, counts = np.unique(np.abs(np.concatenate([apart.ravel(), *starts])), return_counts=True)
    usual = [int(value) for value in values[np.argsort(-counts, kind="stable")] if value >= _ROW]
    yield from usual[:6]


def _conflicts(one: Pattern, base: int, pitch: int, pad: int) -> float:
    moved = one.rows + (one.rows - base) // pitch * pad
    rows = np.where(one.lanes, moved, moved[:, :1] * 0)
    served = served_loads if one.access.kind == "load" else served_stores
    now, free = served(rows, one.lanes, one.access.width)
    return float((now - free).mean()) * one.access.requests
