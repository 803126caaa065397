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
    """Pattern of the sampled addresses of an access; distances and strides are in bytes.

    A stride is the most frequent distance, if at least 70 % of the distances are equal to it; else None. A lane stride
    may also be the median distance: see `_median_distance`.
    """

    access: Access
    #: Byte addresses, and the mask of active lanes, of the sampled requests, (requests, 32).
    addresses: Array
    lanes: Array
    #: Distinct addresses of each request, sorted.
    distinct_addresses: list[Array]
    #: "neighbouring lanes"; or "active lanes", if no active lane has an active neighbour.
    lane_text: str
    #: Stride between neighbouring lanes; and of one lane from a warp, a block or an execution to the next.
    lane_stride: int | None
    warp_stride: int | None
    block_stride: int | None
    execution_stride: int | None
    #: Smallest distance between two distinct addresses of a request; 0 if each request has one address.
    shortest_distance: int
    #: Average length of runs: successive active lanes at consecutive elements.
    run_length: float
    #: Ratio of sectors to ideal sectors in the sampled requests.
    sector_ratio: float

    @property
    def wasteful(self) -> bool:
        """True if the whole access is wasteful, and its samples take at least 1.5 times their ideal sectors."""
        return self.sector_ratio >= WASTEFUL and is_wasteful(self.access)

    @property
    def lane_distance(self) -> int:
        """The absolute lane stride in bytes; 0 if there is none."""
        return abs(self.lane_stride or 0)

    @property
    def description(self) -> str:
        """The addresses of a request in words, such as "neighbouring lanes 64 bytes apart"."""
        if self.shortest_distance == 0:
            return "all lanes at one address"
        request_count, lane_count = len(self.lanes), int(self.lanes.sum())
        address_count = sum(map(len, self.distinct_addresses))
        within = ""
        if self.sector_ratio > 1:
            within = "; warps start inside a sector" if self._starts_inside_sector else "; inactive lanes leave gaps"
        elif self.access.sectors > self.access.ideal_sectors:
            within = "; requests without samples take more sectors"
        is_grouped = 2 <= self.run_length < lane_count / request_count  # several runs per request
        if self.lane_distance == self.access.width and not is_grouped:
            order = "" if self.lane_stride == self.access.width else " in descending order"
            return f"{self.lane_text} at neighbouring elements{order}{within}"
        if self.lane_stride and self.lane_distance != self.access.width:
            return f"{self.lane_text} {self.lane_distance} bytes apart"
        is_dense = all((np.diff(distinct) == self.access.width).all() for distinct in self.distinct_addresses)
        if is_dense and address_count == lane_count:
            return f"lanes at neighbouring elements in another order{within}"
        if self.run_length >= 2:
            return self.run_text
        if self.lane_stride == 0:
            lanes_text = f"{lane_count / address_count:.2g} lanes each"
            return f"{address_count / request_count:.2g} addresses per sampled request, {lanes_text}"
        return "irregular addresses"

    @property
    def run_text(self) -> str:
        """Runs of several lanes in words, such as "groups of 2 lanes at consecutive elements"."""
        average = " on average" if self.run_length % 1 else ""
        return f"groups of {self.run_length:.2g} lanes{average} at consecutive elements"

    @property
    def _starts_inside_sector(self) -> bool:
        """True if the same active lanes would take fewer sectors in aligned warps."""
        width = self.access.width
        # Warps in descending order are aligned if the element of lane 0 ends a sector.
        step, lane_0_bytes = (-width, width) if self.lane_stride == -width else (width, 0)
        addresses = np.ma.array(self.addresses, mask=~self.lanes)
        starts = addresses - np.arange(32) * step
        # Addresses of compacted lanes do not follow the lane numbers: there the lowest address is the start.
        is_by_lane = starts.min(axis=1) == starts.max(axis=1)
        first = np.where(is_by_lane, starts.min(axis=1) + lane_0_bytes, addresses.min(axis=1))
        aligned = count_sectors(self.addresses - first[:, None] % SECTOR, self.lanes, width)
        return bool(aligned.sum() < count_sectors(self.addresses, self.lanes, width).sum())

    def find_unit_at_stride(self, distance: int) -> str:
        """Return the unit whose stride is ``distance``, "row of threads" if `shortest_distance` is, or ""."""
        strides = {"loop iteration": self.execution_stride, "warp": self.warp_stride, "block": self.block_stride}
        for unit, stride in strides.items():
            if stride is not None and abs(stride) == distance:
                return unit
        return "row of threads" if self.shortest_distance == distance else ""

    def measure_offset(self, second: Pattern) -> int | None:
        """Return the common distance in bytes from this access to a second one, over lanes active in both.

        Only the first samples are compared. Return None if they have different shapes, or no distance is common.
        """
        first_sample, second_sample = self.access.samples[0], second.access.samples[0]
        if first_sample.lanes.shape != second_sample.lanes.shape:
            return None
        both = first_sample.lanes & second_sample.lanes
        return _common_distance((second_sample.addresses - first_sample.addresses)[both])


def find_array_name(access: Access, arrays: Iterable[tuple[int, int, str]], words: Sequence[str] = ()) -> str:
    """Return the name of the array that an access touches; empty if unknown, and for local memory.

    ``arrays`` has the address, size and name of each array. ``words`` are the texts of the arguments: the label in a
    text, such as x in ``x=float32[4]``, replaces the name ``argument 0``.
    """
    samples = [sample for sample in access.samples if sample.lanes.any()]
    if access.space == "local" or not samples:
        return ""
    address = int(samples[0].addresses[samples[0].lanes][0])
    name = next((array_name for first, size, array_name in arrays if first <= address < first + size), "")
    name = demangle(name).rpartition("::")[2]  # of a variable of the module, without its namespace
    name = re.sub(r".* \((argument \d+)\)", r"\1", name)  # "in (argument 0)", from `name_arguments`
    labels = {str(n): word.partition("=")[0] for n, word in enumerate(words) if "=" in word}
    return re.sub(r"argument (\d+)", lambda match: labels.get(match[1], match[0]), name)


def find_pattern(access: Access) -> Pattern | None:
    """Return the pattern of an access; None if no sampled request has at least `ENOUGH_LANES` active lanes."""
    if not access.samples:
        return None
    addresses = np.concatenate([sample.addresses.reshape(-1, 32) for sample in access.samples])
    lanes = np.concatenate([sample.lanes.reshape(-1, 32) for sample in access.samples])
    is_pattern = lanes.sum(axis=1) >= ENOUGH_LANES
    addresses, lanes = addresses[is_pattern], lanes[is_pattern]
    if not len(addresses):
        return None
    active_addresses = [request[mask] for request, mask in zip(addresses, lanes, strict=True)]
    active_distances = np.concatenate([np.diff(request) for request in active_addresses])
    neighbour_distances = np.diff(addresses, axis=1)[lanes[:, 1:] & lanes[:, :-1]]
    distances = neighbour_distances if neighbour_distances.size else active_distances
    common_distance = _common_distance(distances)
    distinct_addresses = [*map(np.unique, active_addresses)]
    gaps = [np.diff(distinct) for distinct in distinct_addresses if len(distinct) > 1]
    ideal = sum(-(-len(distinct) * access.width // SECTOR) for distinct in distinct_addresses)
    # A run of lanes at consecutive elements ends at each other distance, and at the end of its request.
    run_count = int((active_distances != access.width).sum()) + len(addresses)
    return Pattern(
        access,
        addresses,
        lanes,
        distinct_addresses,
        "neighbouring lanes" if neighbour_distances.size else "active lanes",
        lane_stride=_median_distance(distances) if common_distance is None else common_distance,
        warp_stride=_common_pair_distance(_iter_neighbours(access.samples, axis=1)),
        block_stride=_common_pair_distance(_iter_neighbours(access.samples, axis=0)),
        execution_stride=_common_pair_distance(zip(access.samples, access.samples[1:], strict=False)),
        shortest_distance=min((int(gap.min()) for gap in gaps), default=0),
        run_length=int(lanes.sum()) / run_count,
        sector_ratio=int(count_sectors(addresses, lanes, access.width).sum()) / ideal,
    )


def _iter_neighbours(samples: Iterable[Sample], axis: int) -> Iterable[tuple[Sample, Sample]]:
    """Yield the first two blocks (axis 0) or warps (axis 1), which are adjacent, of each sample that has two."""

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
    """Return the median distance in bytes if it is large, and at least 70 % of the distances are near it; else None.

    Lanes in different loop iterations cause other distances. Large is more than two sectors; near is less than one
    sector away.
    """
    if not distances.size:
        return None
    median = int(np.median(distances))
    near_count = np.count_nonzero(np.abs(distances - median) < SECTOR)
    return median if abs(median) > 2 * SECTOR and near_count >= _COMMON_SHARE * distances.size else None


def _common_distance(distances: Array) -> int | None:
    """Return the most frequent distance if at least 70 % are equal to it, else None."""
    if not distances.size:
        return None
    values, counts = np.unique(distances, return_counts=True)
    return int(values[counts.argmax()]) if counts.max() >= _COMMON_SHARE * distances.size else None
