"""Bank conflicts, and a padding of rows that avoids them."""

from collections.abc import Iterator, Sequence

import numpy as np

from ..counting.transactions import BANKS, WORD
from ..report.patterns import Pattern

#: Minimum bytes of a row of a tile in shared memory.
_MIN_ROW_BYTES = 32
#: A distance in bytes, larger than any between two lanes.
_UNREACHABLE = 1 << 40


def describe_conflict(pattern: Pattern, patterns: Sequence[Pattern]) -> str:
    """Describe the bank conflicts of an access, and a padding against them. ``patterns`` are all shared accesses."""
    access = pattern.access
    now, free = (count / access.requests for count in (access.wavefronts, access.conflict_free))
    head = f"{now:.3g} wavefronts per request, {free:.3g} without bank conflicts"
    if pattern.lane and pattern.stride > access.width:
        head += f"; neighbouring lanes are {pattern.stride / WORD:g} words apart"
    padding = find_padding(pattern, patterns)
    if padding is None:
        return f"{head}; let a warp access {BANKS} consecutive words"
    pitch, pad, remaining_conflicts = padding
    padded = free + remaining_conflicts / access.requests
    return f"{head}; pad every {pitch} bytes by {pad} to get {padded:.3g}"


def _find_tile(pattern: Pattern, patterns: Sequence[Pattern]) -> list[Pattern]:
    """Return the accesses whose address range overlaps that of ``pattern``."""
    extents = {
        candidate: (int(candidate.rows[candidate.lanes].min()), int(candidate.rows[candidate.lanes].max()))
        for candidate in patterns
    }
    low, high = extents[pattern]
    return [candidate for candidate in patterns if extents[candidate][0] <= high and extents[candidate][1] >= low]


def find_padding(pattern: Pattern, patterns: Sequence[Pattern]) -> tuple[int, int, float] | None:
    """Return row bytes, padding bytes, and the access's remaining conflicts, for the padding with the fewest conflicts.

    A padding must at least halve the conflicts of the access, and of all accesses to the tile. None if there is none.
    """
    tile = _find_tile(pattern, patterns)
    base = min(int(access_pattern.rows[access_pattern.lanes].min()) for access_pattern in tile)
    unit = max(WORD, *(access_pattern.access.width for access_pattern in tile))
    options = []
    distances, both_active = np.diff(pattern.rows, axis=1), pattern.lanes[:, 1:] & pattern.lanes[:, :-1]
    least, most = (np.where(both_active, distances, end * _UNREACHABLE) for end in (1, -1))
    if (least.min(axis=0) < most.max(axis=0)).any():  # the pattern changes: the samples are incomplete
        return None
    conflicts = {access_pattern: _count_conflicts(access_pattern, base, _MIN_ROW_BYTES, 0) for access_pattern in tile}
    for pitch in _iter_pitches(pattern):
        for pad in (unit * factor for factor in (1, 2, 4, 8, 16)):
            padded = {access_pattern: _count_conflicts(access_pattern, base, pitch, pad) for access_pattern in tile}
            if sum(padded.values()) <= sum(conflicts.values()) / 2 and padded[pattern] <= conflicts[pattern] / 2:
                options.append((sum(padded.values()), pad, pitch, padded[pattern]))
    if not options:
        return None
    _, pad, pitch, remaining_conflicts = min(options)
    return pitch, pad, remaining_conflicts


def _iter_pitches(pattern: Pattern) -> Iterator[int]:
    """Yield up to six candidates for the bytes of a row: the most frequent distances between lanes or runs of lanes."""
    distances = np.diff(pattern.rows, axis=1)
    distances[~(pattern.lanes[:, 1:] & pattern.lanes[:, :-1])] = 0
    starts = []
    for row, jumps in zip(pattern.rows, distances, strict=True):
        run_starts = row[np.r_[0, 1 + np.flatnonzero((jumps != pattern.access.width) & (jumps != 0))]]
        starts.append(np.diff(run_starts))
    values, counts = np.unique(np.abs(np.concatenate([distances.ravel(), *starts])), return_counts=True)
    usual = [int(value) for value in values[np.argsort(-counts, kind="stable")] if value >= _MIN_ROW_BYTES]
    yield from usual[:6]


def _count_conflicts(pattern: Pattern, base: int, pitch: int, pad: int) -> float:
    moved = pattern.rows + (pattern.rows - base) // pitch * pad
    rows = np.where(pattern.lanes, moved, moved[:, :1] * 0)
    wavefronts, free = pattern.access.wavefront_rule(rows, pattern.lanes, pattern.access.width)
    return float((wavefronts - free).mean()) * pattern.access.requests
