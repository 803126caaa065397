"""The pattern of an access, from the addresses that some of its warps had."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..counting.counters import Access
from ..counting.samples import Sample
from ..counting.transactions import SECTOR, sectors
from ..lanes.warps import Array
from ..source.names import demangled
from .listing import WASTEFUL, is_wasteful

#: Fewer lanes than this make no pattern: the last warp of a row, one thread that writes a sum.
ENOUGH_LANES = 8
#: The part of the distances that must be the same for it to be called the distance.
_MOST = 0.7


@dataclass(frozen=True, eq=False)
class Pattern:
    """What the samples of an access show; distances are in bytes, and None where most differ, or there are none."""

    #: Its counts.
    access: Access
    #: The addresses of each request, and its active lanes, (requests, 32).
    rows: Array
    lanes: Array
    #: From a lane to the next; of the same lane from a warp, a block and an execution to the next.
    lane: int | None
    warp: int | None
    block: int | None
    step: int | None
    #: The least between two addresses of a request.
    nearest: int
    #: Lanes that follow each other in memory without a gap, on average.
    run: float
    #: Sectors by those that the different addresses would fill.
    excess: float

    @property
    def wasteful(self) -> bool:
        """Whether the requests take far more sectors than the addresses, and all bytes, would fill."""
        return self.excess >= WASTEFUL and is_wasteful(self.access)

    @property
    def stride(self) -> int:
        """The distance of lanes without its sign; 0 where there is none."""
        return abs(self.lane or 0)

    @property
    def words(self) -> str:
        """How the lanes of a warp lie to each other."""
        if self.nearest == 0:
            return "all lanes at one address"
        if abs(self.lane or 0) == self.access.width:
            order = "" if self.lane == self.access.width else " in descending order"
            within = "; warps begin within a sector" if self.access.sectors > self.access.ideal_sectors else ""
            return f"neighbouring lanes at neighbouring elements{order}{within}"
        if self.lane:
            return f"neighbouring lanes {self.stride} bytes apart"
        if self.run >= 2:
            return f"{self.run:.2g} neighbouring lanes follow each other, then a jump"
        return "lanes have no common distance"

    def walks(self, distance: int) -> str:
        """Who goes from one address to that which lies so far from it."""
        for who, found in (("execution", self.step), ("warp", self.warp), ("block", self.block)):
            if found is not None and abs(found) == distance:
                return who
        return "row of threads" if self.nearest == distance else ""

    def offset(self, other: Pattern) -> int | None:
        """Where another access is, seen from this one, for a thread that does both; None if no sample tells."""
        mine, theirs = self.access.samples[0], other.access.samples[0]
        if mine.lanes.shape != theirs.lanes.shape:
            return None
        both = mine.lanes & theirs.lanes
        return _usual((theirs.addresses - mine.addresses)[both])


def array_of(access: Access, arrays: Iterable[tuple[int, int, str]], words: Sequence[str] = ()) -> str:
    """The name of the array that an access touches: what the words of the arguments call it; nothing where unknown."""
    samples = [] if access.space == "local" else access.samples
    place = next((int(each.addresses[each.lanes][0]) for each in samples if each.lanes.any()), None)
    name = next((n for first, size, n in arrays if place is not None and first <= place < first + size), "")
    if name.startswith("_Z"):
        return demangled(name).rpartition("::")[2]
    names = {str(n): word.partition("=")[0] for n, word in enumerate(words) if "=" in word}
    return re.sub(r"argument (\d+)", lambda found: names.get(found[1], found[0]), name)


def pattern(access: Access) -> Pattern | None:
    """The pattern of an access; None if too few lanes take part to call it one."""
    if not access.samples:
        return None
    rows = np.concatenate([each.addresses.reshape(-1, 32) for each in access.samples])
    lanes = np.concatenate([each.lanes.reshape(-1, 32) for each in access.samples])
    enough = lanes.sum(axis=1) >= ENOUGH_LANES
    rows, lanes = rows[enough], lanes[enough]
    if not len(rows):
        return None
    apart = np.diff(rows, axis=1)[lanes[:, 1:] & lanes[:, :-1]]
    different = [np.unique(row[mask]) for row, mask in zip(rows, lanes, strict=True)]
    gaps = [np.diff(each) for each in different if len(each) > 1]
    ideal = sum(-(-len(each) * access.width // SECTOR) for each in different)
    breaks = int((apart != access.width).sum())
    return Pattern(
        access,
        rows,
        lanes,
        _usual(apart) or _about(apart),
        _between(_neighbours(access.samples, axis=1)),
        _between(_neighbours(access.samples, axis=0)),
        _between(zip(access.samples, access.samples[1:], strict=False)),
        min((int(each.min()) for each in gaps), default=0),
        int(lanes.sum()) / (breaks + len(rows)),
        int(sectors(rows, lanes, access.width).sum()) / ideal,
    )


def _neighbours(samples: Iterable[Sample], axis: int) -> Iterable[tuple[Sample, Sample]]:
    for each in samples:
        if each.lanes.shape[axis] > 1:
            ends = (Sample(each.addresses.take([n], axis), each.lanes.take([n], axis), [], 0) for n in (0, 1))
            yield next(ends), next(ends)


def _between(pairs: Iterable[tuple[Sample, Sample]]) -> int | None:
    found = [
        (after.addresses - before.addresses)[before.lanes & after.lanes]
        for before, after in pairs
        if before.lanes.shape == after.lanes.shape
    ]
    return _usual(np.concatenate(found)) if found else None


def _about(distances: Array) -> int | None:
    """The middle of distances that differ by less than a sector, as of lanes out of step in their loops."""
    if not distances.size:
        return None
    middle = int(np.median(distances))
    near = np.count_nonzero(np.abs(distances - middle) < SECTOR)
    return middle if abs(middle) > 2 * SECTOR and near >= _MOST * distances.size else None


def _usual(distances: Array) -> int | None:
    if not distances.size:
        return None
    values, counts = np.unique(distances, return_counts=True)
    return int(values[counts.argmax()]) if counts.max() >= _MOST * distances.size else None
