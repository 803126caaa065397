"""Advice on the accesses of a launch. ptxcount/ADVICE.md describes each rule."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..counting.counters import LaunchCounters
from ..counting.transactions import LINE, SECTOR
from ..lanes.warps import Array
from ..machine.argument_layout import KernelArgument
from ..report.patterns import Pattern, find_array_name, find_pattern
from ..util.grammar import count_noun
from . import banks

#: Minimum share of the launch's sectors for advice on a group of similar accesses.
_MIN_SHARE = 0.02
#: Maximum bytes of a thread's access, and of a struct.
_MAX_ACCESS_BYTES = 16
_MAX_STRUCT_BYTES = 128


class Advice(NamedTuple):
    """Advice on similar accesses: its code, its text, and their files and lines, the most expensive first."""

    code: str
    text: str
    places: list[tuple[str | None, int | None]]


class _LaunchPatterns:
    """The patterns of a launch's loads and stores, and facts about its arrays."""

    def __init__(self, counters: LaunchCounters, arguments: Sequence[KernelArgument], words: Sequence[str]) -> None:
        patterns = [find_pattern(access) for access in counters.accesses if access.kind in ("load", "store")]
        self.patterns = [pattern for pattern in patterns if pattern is not None]
        self.requests = sum(access.requests for access in counters.accesses if access.space == "global")
        self._arrays, self._words = counters.arrays, words
        self._shapes = {
            f"argument {n}": argument for n, argument in enumerate(arguments) if isinstance(argument, np.ndarray)
        }
        self._scalars = [int(scalar) for scalar in arguments if isinstance(scalar, np.integer)]
        self._moved = Counter[tuple[str, str, int | None]]()
        for pattern in self.patterns:
            for group in self._list_groups(pattern):
                self._moved[group] += pattern.access.sectors
        self._min_sectors = _MIN_SHARE * sum(pattern.access.sectors for pattern in self.patterns)

    def find_array(self, pattern: Pattern) -> str:
        """Return the name of an access's array in the counters, such as ``argument 0``; empty if unknown."""
        return find_array_name(pattern.access, self._arrays)

    def is_significant(self, pattern: Pattern) -> bool:
        """Tell if accesses to the array with this lane stride, or at this line, move at least 2 % of the sectors."""
        return any(self._moved[group] >= self._min_sectors for group in self._list_groups(pattern))

    def _list_groups(self, pattern: Pattern) -> list[tuple[str, str, int | None]]:
        """List the groups of a pattern: all accesses to its array with its lane stride, and all at its source line."""
        return [
            (self.find_array(pattern), "lane", pattern.lane),
            (self.find_array(pattern), "line", pattern.access.source.line),
        ]

    def find_name(self, pattern: Pattern) -> str:
        """Return the name of an access's array for messages: the argument's label if it has one."""
        return find_array_name(pattern.access, self._arrays, self._words) or f"{pattern.access.space} memory"

    def find_neighbours(self, pattern: Pattern) -> list[tuple[int, Pattern]]:
        """Return the accesses to the array with this lane stride, each after its distance in bytes from this one."""
        neighbours = []
        for neighbour in self.patterns:
            if (
                neighbour.access.space == "global"
                and neighbour.lane == pattern.lane
                and self.find_array(neighbour) == self.find_array(pattern)
            ):
                offset = pattern.measure_offset(neighbour)
                if offset is not None and abs(offset) < LINE:
                    neighbours.append((offset, neighbour))
        return neighbours

    def describe_pitch(self, pattern: Pattern) -> str:
        """Describe a lane stride that is a row of the array, or a scalar argument in elements; else return ""."""
        if self.has_row_stride(pattern):
            return f"a declared row of {self.find_name(pattern)}"
        scalars = self._scalars if pattern.stride >= SECTOR else []
        return next((f"the value of argument {n}" for n in scalars if n * pattern.access.width == pattern.stride), "")

    def has_row_stride(self, pattern: Pattern) -> bool:
        """Tell if the lane stride equals the stride of an axis of the array other than the last."""
        array = self._shapes.get(self.find_array(pattern))
        return array is not None and pattern.stride in array.strides[:-1]


def find_advice(
    counters: LaunchCounters, arguments: Sequence[KernelArgument], words: Sequence[str]
) -> Iterator[Advice]:
    """Yield the advice on a launch, in PTX order; similar accesses to one array share one `Advice`."""
    launch = _LaunchPatterns(counters, arguments, words)
    causes: dict[tuple[str, object], list[tuple[Pattern, str]]] = {}
    seen_places = set()
    for pattern in launch.patterns:
        access = pattern.access
        verdict = _judge_shared(pattern, launch) if access.space == "shared" else _judge_global(pattern, launch)
        place = (access.source.file, access.source.line, access.space, access.kind, launch.find_array(pattern))
        if verdict and place not in seen_places:
            seen_places.add(place)
            code, text = verdict
            remedy = text.partition("; ")[2] if access.space == "shared" else ""
            cause = (*place[2:], access.width, pattern.lane, remedy)
            causes.setdefault((code, cause), []).append(
                (pattern, f"{access.kind} of {launch.find_name(pattern)}: {text}")
            )
    for (code, _), accesses in causes.items():
        worst = max(accesses, key=lambda pair: pair[0].access.sectors + pair[0].access.wavefronts)
        places = [(pattern.access.source.file, pattern.access.source.line) for pattern, _ in (worst, *accesses)]
        yield Advice(code, worst[1], list(dict.fromkeys(places)))


def _judge_shared(pattern: Pattern, launch: _LaunchPatterns) -> tuple[str, str] | None:
    if pattern.access.bank_conflicts < pattern.access.requests * 0.5:
        return None
    return "PC105", banks.describe_conflict(
        pattern, [candidate for candidate in launch.patterns if candidate.access.space == "shared"]
    )


def _judge_global(pattern: Pattern, launch: _LaunchPatterns) -> tuple[str, str] | None:
    access = pattern.access
    if access.space != "global" or not launch.is_significant(pattern):
        return None
    verdict = _explain_waste(pattern, launch) if pattern.wasteful else None
    verdict = verdict or (("PC104", _MISALIGNED) if _is_misaligned(pattern, launch) else None)
    if verdict is None:
        return _judge_narrow(pattern, launch)
    actual, ideal = (count / access.requests for count in (access.sectors, access.ideal_sectors))
    return verdict[0], f"{verdict[1]} ({actual:.3g} sectors per request, ideal {ideal:.3g})"


_MISALIGNED = f"warps start inside a sector: align the data and its rows to {SECTOR} bytes"
_WALK = "each lane iterates over its own row: let the lanes of a warp share one row"
_SCATTERED = (
    "irregular addresses, as from indices in memory, or from lanes in different iterations: sort or group them, or "
    "stage the data in shared memory"
)


def _explain_waste(pattern: Pattern, launch: _LaunchPatterns) -> tuple[str, str] | None:
    """Return code and text of the cause of wasted sectors: strided lanes, a row per lane, short rows, or no pattern."""
    if pattern.stride >= 2 * pattern.access.width:
        code, text = _explain_stride(pattern, launch)
        return code, f"{pattern.pair} are {pattern.stride} bytes apart{text}"
    if pattern.step and abs(pattern.step) <= SECTOR:
        return "PC102", _WALK
    length = pattern.run * pattern.access.width
    if length >= SECTOR:
        return None
    if pattern.run < 2:
        return "PC108", _SCATTERED
    text = f"groups of {pattern.run:.2g} lanes at consecutive elements use {length:.3g} of {SECTOR} bytes of a sector"
    return "PC107", f"{text}: use more threads along x"


def _explain_stride(pattern: Pattern, launch: _LaunchPatterns) -> tuple[str, str]:
    """Return code and text of the first cause that matches a lane stride."""
    access, stride, width = pattern.access, pattern.stride, pattern.access.width
    fields = [
        (offset, neighbour.access) for offset, neighbour in launch.find_neighbours(pattern) if abs(offset) < stride
    ]
    offsets = sorted(
        {offset for offset, neighbour in fields if (neighbour.kind, neighbour.width) == (access.kind, width)}
    )
    first = int(pattern.rows[pattern.lanes].min()) + offsets[0]
    is_filled = [offset - offsets[0] for offset in offsets] == list(range(0, stride, width)) and first % stride == 0
    if is_filled and stride in (2 * width, 4 * width) and stride <= _MAX_ACCESS_BYTES:
        text = f", {len(offsets)} accesses cover the gap: use one of {stride} bytes; ptxas may merge them already"
        return "PC106", text
    line = access.source.line
    unrolled = stride > SECTOR and any(
        abs(offset) == width and neighbour.source.line == line for offset, neighbour in fields
    )
    if walker := pattern.find_unit_at_stride(width) or ("execution" if unrolled else ""):
        text = f"; the next {walker} is {width} bytes away: exchange the two axes, or use a tile in shared memory"
        return "PC102", text
    member_count, pitch = len({offset for offset, _ in fields if offset}), launch.describe_pitch(pattern)
    if stride <= _MAX_STRUCT_BYTES and (member_count or launch.has_row_stride(pattern)):
        members = f"and {member_count + 1} members are accessed" if member_count else pitch
        text = "let neighbouring lanes access consecutive elements, with one array per member"
        return "PC103", f", {members}: {text}, or use shared memory"
    if pitch:
        return "PC102", f", {pitch}: let a warp access consecutive elements, or use a tile in shared memory"
    return "PC101", ": let neighbouring lanes access consecutive elements"


def _is_misaligned(pattern: Pattern, launch: _LaunchPatterns) -> bool:
    """Tell if warps at consecutive elements start inside a sector, and no similar access to the array is aligned."""
    if (
        pattern.lane != pattern.access.width
        or pattern.run < 16
        or pattern.access.sectors <= pattern.access.ideal_sectors
    ):
        return False
    similar_patterns = [
        candidate
        for candidate in launch.patterns
        if candidate.lane == pattern.lane and launch.find_array(candidate) == launch.find_array(pattern)
    ]
    window = pattern.step is not None and 0 < abs(pattern.step) < LINE
    starts = _find_warp_starts(pattern)
    if not len(starts) or window or min(offset for offset, _ in launch.find_neighbours(pattern)) < 0:
        return False
    if any(
        np.count_nonzero(warp_starts) * 2 < len(warp_starts) for warp_starts in map(_find_warp_starts, similar_patterns)
    ):
        return False
    return not np.ptp(starts) or any(
        distance is not None and distance % SECTOR for distance in (pattern.warp, pattern.block, pattern.step)
    )


def _find_warp_starts(pattern: Pattern) -> Array:
    """Return the byte offset within a sector of lane 0, for each sampled request without inactive lanes."""
    return pattern.rows[pattern.lanes.all(axis=1)][:, 0] % SECTOR


def _judge_narrow(pattern: Pattern, launch: _LaunchPatterns) -> tuple[str, str] | None:
    access = pattern.access
    if access.width > 2 or pattern.lane != access.width or pattern.run < 16 or access.requests < 0.1 * launch.requests:
        return None
    text = f"{count_noun(access.width, 'byte')} per lane, {access.width * 32} per request: vectors as uchar4"
    return "PC106", f"{text} need fewer requests; ptxas may merge them already"
