"""A picture of an access: the sector of each lane of a warp, or the busy banks of each wavefront.

A row is a sector or a wavefront of one request, so the height is the cost; a column is a lane, or in shared memory a
bank. A second picture shows the same bytes at the ideal cost.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..counting.counters import Access
from ..counting.transactions import BANKS, SECTOR, WORD, count_sectors
from ..lanes.warps import Array

Grid = npt.NDArray[np.bool_]
#: Maximum rows printed; longer pictures show the first rows and the last.
_ROWS = 8


@dataclass(frozen=True)
class Picture:
    """Masks of a typical request, as it is and at best, with a row per sector or wavefront and 32 columns.

    ``unit`` is "sectors" or "wavefronts".
    """

    unit: str
    now: Grid
    best: Grid

    def format_text(self) -> str:
        """Format both grids side by side, in at most eight rows below a heading."""
        sides = []
        for name, grid in (("now", self.now), ("at best", self.best)):
            unit = self.unit[:-1] if len(grid) == 1 else self.unit
            sides.append([f"{name}: {len(grid)} {unit}", *_draw_rows(grid)])
        height = max(map(len, sides))
        padded = [side + [""] * (height - len(side)) for side in sides]
        return "\n".join(f"{left:<36}{right}".rstrip() for left, right in zip(*padded, strict=True))


def _draw_rows(grid: Grid) -> list[str]:
    rows = ["".join("█" if cell else "·" for cell in row) for row in grid]
    if len(rows) <= _ROWS:
        return rows
    return [*rows[: _ROWS - 2], f"⋮ {len(rows) - _ROWS + 1} more", rows[-1]]


def draw_access(access: Access) -> Picture | None:
    """Draw the most typical sampled request of an access to global or shared memory.

    Return None for other memory, for an atomic, without samples, or if no picture is as high as the counted cost.
    """
    draw = {"global": _draw_sectors, "shared": _draw_banks}.get(access.space)
    if draw is None or access.kind == "atomic" or not access.samples:
        return None
    addresses = np.concatenate([sample.addresses.reshape(-1, 32) for sample in access.samples])
    lanes = np.concatenate([sample.lanes.reshape(-1, 32) for sample in access.samples])
    addresses, lanes = addresses[lanes.any(axis=1)], lanes[lanes.any(axis=1)]
    if access.space == "global":
        counts, mean = count_sectors(addresses, lanes, access.width), access.sectors / access.requests
    else:
        counts = access.wavefront_rule(addresses, lanes, access.width)[0]
        mean = access.wavefronts / access.requests
    typical = int(np.abs(counts - mean).argmin())
    candidates = draw(addresses[typical], lanes[typical], access.width)
    return next((candidate for candidate in candidates if len(candidate.now) == counts[typical]), None)


def _draw_sectors(addresses: Array, lanes: Array, width: int) -> Iterator[Picture]:
    """Yield the picture of a request to global memory. Its ideal has the distinct elements packed in lane order."""

    def mark_sectors(places: Array) -> Grid:
        rows = places // SECTOR
        marked: Grid = (rows == np.unique(rows[lanes])[:, None]) & lanes
        return marked

    active_addresses = addresses[lanes].tolist()
    distinct_addresses = list(dict.fromkeys(active_addresses))
    packed = np.zeros(32, np.int64)
    packed[lanes] = [distinct_addresses.index(address) * width for address in active_addresses]
    yield Picture("sectors", mark_sectors(addresses), mark_sectors(packed))


def _draw_banks(addresses: Array, lanes: Array, width: int) -> Iterator[Picture]:
    """Yield a picture for groups of lanes of the usual size, and one for twice the size; `draw_access` chooses."""
    usual_count = BANKS * WORD // max(width, WORD)
    for lane_count in (usual_count, 2 * usual_count):
        now, best = [], []
        for first in range(0, 32, lane_count):
            group = slice(first, first + lane_count)
            words = (addresses[group][lanes[group], None] >> 2) + np.arange(max(width // WORD, 1))
            bank_words = np.bincount(np.unique(words) % BANKS, minlength=BANKS)
            now.append(bank_words > np.arange(bank_words.max())[:, None])
            best.append(np.arange(BANKS)[None] < bank_words.sum() if len(words) else np.zeros((0, BANKS), bool))
        yield Picture("wavefronts", np.concatenate(now), np.concatenate(best))
