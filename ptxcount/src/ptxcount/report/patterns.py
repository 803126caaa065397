"""The pattern of an access, from sampled addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..counting.counters import Access
from ..counting.samples import Sample
from ..counting.transactions import SECTOR, count_sectors
from ..lanes.warps import Array
from ..source.names import demangle
from .listing import WASTEFUL, is_wasteful

#: Minimum active lanes of a request for a pattern. Others, such as one thread that writes a sum, are ignored.
ENOUGH_LANES = 8
#: Minimum share of equal distances that makes them a stride.
_COMMON_SHARE = 0.7


@dataclass(frozen=True, eq=False)
class Pattern:
    """Pattern of the sampled addresses of an access.

    Strides are in bytes. A stride is None if fewer than 70 % of the distances are equal; for lanes, near the median.
    """

    #: The counters of the access.
    access: Access
    #: Byte addresses, and the mask of active lanes, of the sampled requests, (requests, 32).
    rows: Array
    lanes: Array
    #: Distinct addresses of each request, sorted.
    distinct: list[Array]
    #: Text for the lanes whose distance is ``lane``: "active lanes" if no active lane has an active neighbour.
    pair: str
    #: Strides between neighbouring lanes; and of a lane between adjacent warps, blocks, and successive executions.
    lane: int | None
    warp: int | None
    block: int | None
    step: int | None
    #: Smallest distance in bytes between two distinct addresses of a request; 0 if each request has one address.
    nearest: int
    #: Average number of lanes in runs at consecutive elements.
    run: float
    #: Ratio of sectors to ideal sectors in the sampled requests.
    excess: float

    @property
    def wasteful(self) -> bool:
        """True if `is_wasteful` holds, and the sampled requests take at least 1.5 times their ideal sectors."""
        return self.excess >= WASTEFUL and is_wasteful(self.access)

    @property
    def stride(self) -> int:
        """The absolute lane stride; 0 if there is none."""
        return abs(self.lane or 0)

    @property
    def description(self) -> str:
        """Text on the addresses of neighbouring lanes."""
        if self.nearest == 0:
            return "all lanes at one address"
        requests, lanes, addresses = len(self.lanes), int(self.lanes.sum()), sum(map(len, self.distinct))
        within = ""
        if self.access.sectors > self.access.ideal_sectors:
            within = "; warps start inside a sector" if self._starts_inside_sector else "; inactive lanes leave gaps"
        if self.stride == self.access.width and not 2 <= self.run < lanes / requests:
            order = "" if self.lane == self.access.width else " in descending order"
            return f"{self.pair} at neighbouring elements{order}{within}"
        if self.lane and self.stride != self.access.width:
            return f"{self.pair} {self.stride} bytes apart"
        if addresses == lanes and all((np.diff(row) == self.access.width).all() for row in self.distinct):
            return f"lanes at neighbouring elements in another order{within}"
        if self.run >= 2:
            return f"groups of {self.run:.2g} lanes at consecutive elements"
        if self.lane == 0:
            return f"sampled: {addresses / requests:.2g} addresses, {lanes / addresses:.2g} lanes each"
        return "irregular addresses"

    @property
    def _starts_inside_sector(self) -> bool:
        """True if the same active lanes would take fewer sectors in aligned warps."""
        width, is_descending = self.access.width, self.lane == -self.access.width
        step = -width if is_descending else width
        addresses = np.ma.array(self.rows, mask=~self.lanes)
        starts = addresses - np.arange(32) * step
        # Addresses of compacted lanes do not follow the lane numbers: there the lowest address is the start.
        is_by_lane = starts.min(axis=1) == starts.max(axis=1)
        first = np.where(is_by_lane, starts.min(axis=1) + width * is_descending, addresses.min(axis=1))
        aligned = count_sectors(self.rows - first[:, None] % SECTOR, self.lanes, width)
        return bool(aligned.sum() < count_sectors(self.rows, self.lanes, width).sum())

    def find_unit_at_stride(self, distance: int) -> str:
        """Return "execution", "warp", "block" or "row of threads", whichever has this stride in bytes first, or ""."""
        for walker, walked in (("execution", self.step), ("warp", self.warp), ("block", self.block)):
            if walked is not None and abs(walked) == distance:
                return walker
        return "row of threads" if self.nearest == distance else ""

    def measure_offset(self, second: Pattern) -> int | None:
        """Return the most common distance in bytes from this access to a second one, over lanes active in both.

        None if the samples have different shapes, or no distance is common.
        """
        first_sample, second_sample = self.access.samples[0], second.access.samples[0]
        if first_sample.lanes.shape != second_sample.lanes.shape:
            return None
        both = first_sample.lanes & second_sample.lanes
        return _common_distance((second_sample.addresses - first_sample.addresses)[both])


def find_array_name(access: Access, arrays: Iterable[tuple[int, int, str]], words: Sequence[str] = ()) -> str:
    """Return the name of the array that an access touches; empty if unknown.

    ``arrays`` has address, size and name of each. ``words`` are the texts of the arguments, whose labels are preferred.
    """
    samples = [] if access.space == "local" else access.samples
    place = next((int(sample.addresses[sample.lanes][0]) for sample in samples if sample.lanes.any()), None)
    name = next((n for first, size, n in arrays if place is not None and first <= place < first + size), "")
    if name.startswith("_Z"):
        return demangle(name).rpartition("::")[2]
    name = re.sub(r".* \((argument \d+)\)", r"\1", name)
    names = {str(n): word.partition("=")[0] for n, word in enumerate(words) if "=" in word}
    return re.sub(r"argument (\d+)", lambda match: names.get(match[1], match[0]), name)


def find_pattern(access: Access) -> Pattern | None:
    """Return the pattern of an access; None if each sampled request has fewer than 8 active lanes."""
    if not access.samples:
        return None
    rows = np.concatenate([sample.addresses.reshape(-1, 32) for sample in access.samples])
    lanes = np.concatenate([sample.lanes.reshape(-1, 32) for sample in access.samples])
    enough = lanes.sum(axis=1) >= ENOUGH_LANES
    rows, lanes = rows[enough], lanes[enough]
    if not len(rows):
        return None
    active_rows = [row[mask] for row, mask in zip(rows, lanes, strict=True)]
    steps = np.concatenate([np.diff(row) for row in active_rows])
    neighbours = np.diff(rows, axis=1)[lanes[:, 1:] & lanes[:, :-1]]
    distances = neighbours if neighbours.size else steps
    distinct_rows = [*map(np.unique, active_rows)]
    gaps = [np.diff(addresses) for addresses in distinct_rows if len(addresses) > 1]
    ideal = sum(-(-len(addresses) * access.width // SECTOR) for addresses in distinct_rows)
    breaks = int((steps != access.width).sum())
    return Pattern(
        access,
        rows,
        lanes,
        distinct_rows,
        "neighbouring lanes" if neighbours.size else "active lanes",
        _median_distance(distances) if (distance := _common_distance(distances)) is None else distance,
        _common_pair_distance(_iter_neighbours(access.samples, axis=1)),
        _common_pair_distance(_iter_neighbours(access.samples, axis=0)),
        _common_pair_distance(zip(access.samples, access.samples[1:], strict=False)),
        min((int(gap.min()) for gap in gaps), default=0),
        int(lanes.sum()) / (breaks + len(rows)),
        int(count_sectors(rows, lanes, access.width).sum()) / ideal,
    )


def _iter_neighbours(samples: Iterable[Sample], axis: int) -> Iterable[tuple[Sample, Sample]]:
    def take(sample: Sample, place: int) -> Sample:
        return Sample(sample.addresses.take([place], axis), sample.lanes.take([place], axis), [], 0)

    return ((take(sample, 0), take(sample, 1)) for sample in samples if sample.lanes.shape[axis] > 1)


def _common_pair_distance(pairs: Iterable[tuple[Sample, Sample]]) -> int | None:
    distances = [
        (after.addresses - before.addresses)[before.lanes & after.lanes]
        for before, after in pairs
        if before.lanes.shape == after.lanes.shape
    ]
    return _common_distance(np.concatenate(distances)) if distances else None


def _median_distance(distances: Array) -> int | None:
    """Return the median of distances in bytes if it exceeds 64, and 70 % of the distances are within a sector of it.

    Lanes in different loop iterations cause the other distances.
    """
    if not distances.size:
        return None
    middle = int(np.median(distances))
    near = np.count_nonzero(np.abs(distances - middle) < SECTOR)
    return middle if abs(middle) > 2 * SECTOR and near >= _COMMON_SHARE * distances.size else None


def _common_distance(distances: Array) -> int | None:
    if not distances.size:
        return None
    values, counts = np.unique(distances, return_counts=True)
    return int(values[counts.argmax()]) if counts.max() >= _COMMON_SHARE * distances.size else None
