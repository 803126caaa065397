"""Bank conflicts, and a padding of rows that avoids them."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from ..counting.transactions import BANKS, WORD
from ..report.patterns import Pattern

#: Minimum bytes of a row of a tile in shared memory.
_MIN_ROW_BYTES = 32
#: A distance in bytes, larger than any between two lanes.
_UNREACHABLE = 1 << 40


def describe_conflict(pattern: Pattern, patterns: Sequence[Pattern]) -> str:
    """Describe the bank conflicts of an access, and a remedy. ``patterns`` are all shared accesses."""
    access = pattern.access
    actual, ideal = access.wavefronts / access.requests, access.conflict_free / access.requests
    head = f"{actual:.3g} wavefronts per request, {ideal:.3g} without bank conflicts"
    if pattern.lane_stride and pattern.lane_distance > access.width:
        head += f"; neighbouring lanes are {pattern.lane_distance / WORD:g} words apart"
    padding = find_padding(pattern, patterns)
    if padding is None:
        return f"{head}; let a warp access {BANKS} consecutive words"
    row_bytes, pad_bytes, conflicts = padding
    return f"{head}; to get {ideal + conflicts / access.requests:.3g}, add {pad_bytes} bytes after every {row_bytes}"


def find_padding(pattern: Pattern, patterns: Sequence[Pattern]) -> tuple[int, int, float] | None:
    """Find the padding with the fewest conflicts of all accesses to the tile of this access.

    Return the bytes of a row, the padding bytes after each, and this access's conflicts with the padding.

    A padding must at least halve the conflicts of the access, and of the tile; None if none does. None also if the
    distances between lanes differ from request to request: then the samples do not stand for all requests.
    """
    if _has_varying_distances(pattern):
        return None
    tile = _Tile(pattern, patterns)
    unit = max(WORD, *(candidate.access.width for candidate in tile.patterns))
    conflicts = tile.count_conflicts(_MIN_ROW_BYTES, 0)
    options = []
    for row_bytes, pad_bytes in product(_guess_row_bytes(pattern), (unit, 2 * unit, 4 * unit, 8 * unit, 16 * unit)):
        padded = tile.count_conflicts(row_bytes, pad_bytes)
        tile_conflicts = sum(padded.values())
        if tile_conflicts <= sum(conflicts.values()) / 2 and padded[pattern] <= conflicts[pattern] / 2:
            options.append((tile_conflicts, pad_bytes, row_bytes, padded[pattern]))
    if not options:
        return None
    _, pad_bytes, row_bytes, remaining_conflicts = min(options)
    return row_bytes, pad_bytes, remaining_conflicts


def _has_varying_distances(pattern: Pattern) -> bool:
    """Tell if the distance between two neighbouring lanes, both active, differs between requests."""
    distances, both_active = np.diff(pattern.addresses, axis=1), pattern.lanes[:, 1:] & pattern.lanes[:, :-1]
    shortest = np.where(both_active, distances, _UNREACHABLE).min(axis=0)
    longest = np.where(both_active, distances, -_UNREACHABLE).max(axis=0)
    return bool((shortest < longest).any())


class _Tile:
    """All accesses whose address range overlaps the range of one access."""

    def __init__(self, pattern: Pattern, patterns: Sequence[Pattern]) -> None:
        addresses = {candidate: candidate.addresses[candidate.lanes] for candidate in patterns}
        lowest, highest = addresses[pattern].min(), addresses[pattern].max()
        self.patterns = [other for other, own in addresses.items() if own.min() <= highest and own.max() >= lowest]
        self._base = min(int(addresses[other].min()) for other in self.patterns)

    def count_conflicts(self, row_bytes: int, pad_bytes: int) -> dict[Pattern, float]:
        """Estimate the bank conflicts of each access from samples, with ``pad_bytes`` after each row of the tile."""
        return {pattern: _count_conflicts(pattern, self._base, row_bytes, pad_bytes) for pattern in self.patterns}


def _guess_row_bytes(pattern: Pattern) -> list[int]:
    """Guess the bytes of a row: the most frequent distances between neighbouring lanes, or between starts of runs.

    At most six distances, each at least `_MIN_ROW_BYTES`. In a run, each lane accesses the element after the last one.
    """
    distances = np.diff(pattern.addresses, axis=1)
    distances[~(pattern.lanes[:, 1:] & pattern.lanes[:, :-1])] = 0
    run_distances = []
    for addresses, lane_distances in zip(pattern.addresses, distances, strict=True):
        run_ends = np.flatnonzero((lane_distances != pattern.access.width) & (lane_distances != 0))
        run_distances.append(np.diff(addresses[np.r_[0, 1 + run_ends]]))
    values, counts = np.unique(np.abs(np.concatenate([distances.ravel(), *run_distances])), return_counts=True)
    by_frequency = values[np.argsort(-counts, kind="stable")]
    return [int(value) for value in by_frequency if value >= _MIN_ROW_BYTES][:6]


def _count_conflicts(pattern: Pattern, base: int, row_bytes: int, pad_bytes: int) -> float:
    """Estimate bank conflicts from samples, with ``pad_bytes`` after each row; the first row begins at ``base``."""
    padded = pattern.addresses + (pattern.addresses - base) // row_bytes * pad_bytes
    rows = np.where(pattern.lanes, padded, 0)
    wavefronts, free = pattern.access.wavefront_rule(rows, pattern.lanes, pattern.access.width)
    return float((wavefronts - free).mean()) * pattern.access.requests
