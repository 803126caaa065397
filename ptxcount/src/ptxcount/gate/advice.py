"""Advice on the accesses of a launch. ptxcount/ADVICE.md describes each rule."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..counting.counters import Access, LaunchCounters
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
    """Advice on similar accesses: code, text, and the files and lines of the accesses, the most expensive first."""

    code: str
    text: str
    places: list[tuple[str | None, int | None]]


class _Verdict(NamedTuple):
    """Advice on one access: a code, and a text that follows the array's name."""

    code: str
    text: str


class _LaunchPatterns:
    """The patterns of a launch's loads and stores, and facts about its arrays."""

    def __init__(self, counters: LaunchCounters, arguments: Sequence[KernelArgument], words: Sequence[str]) -> None:
        patterns = [find_pattern(access) for access in counters.accesses if access.kind in ("load", "store")]
        self.patterns = [pattern for pattern in patterns if pattern is not None]
        self.requests = sum(access.requests for access in counters.accesses if access.space == "global")
        self._arrays, self._words = counters.arrays, words
        self._array_arguments = {
            f"argument {n}": argument for n, argument in enumerate(arguments) if isinstance(argument, np.ndarray)
        }
        self._scalars = [int(scalar) for scalar in arguments if isinstance(scalar, np.integer)]
        self._group_sectors = Counter[tuple[str, str, int | None]]()
        for pattern in self.patterns:
            for group in self._list_groups(pattern):
                self._group_sectors[group] += pattern.access.sectors
        self._min_sectors = _MIN_SHARE * sum(pattern.access.sectors for pattern in self.patterns)

    def find_array(self, pattern: Pattern) -> str:
        """Return the name that the counters have for the accessed array, such as ``argument 0``; "" if unknown."""
        return find_array_name(pattern.access, self._arrays)

    def is_significant(self, pattern: Pattern) -> bool:
        """Tell if a group of this access moves at least 2 % of the sectors of all patterns."""
        return any(self._group_sectors[group] >= self._min_sectors for group in self._list_groups(pattern))

    def _list_groups(self, pattern: Pattern) -> list[tuple[str, str, int | None]]:
        """Return the keys of an access's groups: accesses to its array with its lane stride, and on its source line."""
        array = self.find_array(pattern)
        return [(array, "lane", pattern.lane_stride), (array, "line", pattern.access.source.line)]

    def find_name(self, pattern: Pattern) -> str:
        """Return the array's name for messages: the argument's label, else as `find_array`, else as "shared memory"."""
        return find_array_name(pattern.access, self._arrays, self._words) or f"{pattern.access.space} memory"

    def find_neighbours(self, pattern: Pattern) -> list[tuple[int, Pattern]]:
        """Return the global accesses to the same array with the same lane stride, less than a line away.

        Each comes with its distance in bytes from this access. A global access is its own neighbour, at distance 0.
        """
        neighbours, array = [], self.find_array(pattern)
        for neighbour in self.patterns:
            has_stride = neighbour.access.space == "global" and neighbour.lane_stride == pattern.lane_stride
            if has_stride and self.find_array(neighbour) == array:
                offset = pattern.measure_offset(neighbour)
                if offset is not None and abs(offset) < LINE:
                    neighbours.append((offset, neighbour))
        return neighbours

    def describe_pitch(self, pattern: Pattern) -> str:
        """Describe a lane stride that is a row of the array, or from a sector on, a scalar argument; else return ""."""
        if self.has_row_stride(pattern):
            return f"a declared row of {self.find_name(pattern)}"
        elements, rest = divmod(pattern.lane_distance, pattern.access.width)
        is_scalar = pattern.lane_distance >= SECTOR and not rest and elements in self._scalars
        return f"{elements} elements (the value of an argument)" if is_scalar else ""

    def has_row_stride(self, pattern: Pattern) -> bool:
        """Tell if the lane stride is the stride of an axis of the array other than the last."""
        array = self._array_arguments.get(self.find_array(pattern))
        return array is not None and pattern.lane_distance in array.strides[:-1]


def find_advice(
    counters: LaunchCounters, arguments: Sequence[KernelArgument], words: Sequence[str]
) -> Iterator[Advice]:
    """Yield the advice on a launch, in PTX order; similar accesses to one array share one `Advice`."""
    launch = _LaunchPatterns(counters, arguments, words)
    patterns_by_cause: dict[tuple[object, ...], dict[Pattern, Advice]] = {}
    seen_places = set()
    for pattern in launch.patterns:
        access = pattern.access
        verdict = _judge_shared(pattern, launch) if access.space == "shared" else _judge_global(pattern, launch)
        target = (access.space, access.kind, launch.find_array(pattern))
        place = (access.source.file, access.source.line)
        if verdict is None or (place, target) in seen_places:
            continue
        seen_places.add((place, target))
        remedy = verdict.text.partition("; ")[2] if access.space == "shared" else ""
        cause = (verdict.code, *target, access.width, pattern.lane_stride, remedy)
        text = f"{access.kind} of {launch.find_name(pattern)}: {verdict.text}"
        patterns_by_cause.setdefault(cause, {})[pattern] = Advice(verdict.code, text, [place])
    for advice_by_pattern in patterns_by_cause.values():
        worst = max(advice_by_pattern, key=lambda pattern: pattern.access.sectors + pattern.access.wavefronts)
        advice = advice_by_pattern[worst]
        places = [*advice.places, *(place for similar in advice_by_pattern.values() for place in similar.places)]
        yield advice._replace(places=list(dict.fromkeys(places)))


def _judge_shared(pattern: Pattern, launch: _LaunchPatterns) -> _Verdict | None:
    """Advise against bank conflicts; None if there are fewer than one per two requests."""
    if pattern.access.bank_conflicts < pattern.access.requests * 0.5:
        return None
    shared_patterns = [candidate for candidate in launch.patterns if candidate.access.space == "shared"]
    return _Verdict("PC105", banks.describe_conflict(pattern, shared_patterns))


def _judge_global(pattern: Pattern, launch: _LaunchPatterns) -> _Verdict | None:
    """Advise against wasted sectors, else against misaligned warps, else against narrow accesses.

    Return None if there is nothing to advise, and for an access that is not to global memory or not significant.
    """
    access = pattern.access
    if access.space != "global" or not launch.is_significant(pattern):
        return None
    verdict = _explain_waste(pattern, launch) if pattern.wasteful else None
    if verdict is None and _is_misaligned(pattern, launch):
        verdict = _Verdict("PC104", _MISALIGNED)
    if verdict is None:
        return _judge_narrow(pattern, launch)
    actual, ideal = access.sectors / access.requests, access.ideal_sectors / access.requests
    return _Verdict(verdict.code, f"{verdict.text} ({actual:.3g} sectors per request, ideal {ideal:.3g})")


_MISALIGNED = f"warps start inside a sector; align the data and its rows to {SECTOR} bytes"
_WALK = "each lane iterates over its own row; let the lanes of a warp share one row"
_SCATTERED = (
    "irregular addresses, as from indices in memory, or from lanes in different iterations; sort or group them, or "
    "stage the data in shared memory"
)


def _explain_waste(pattern: Pattern, launch: _LaunchPatterns) -> _Verdict | None:
    """Return the cause of wasted sectors; None if runs of lanes at consecutive elements fill a sector on average."""
    if pattern.lane_distance >= 2 * pattern.access.width:
        code, text = _explain_stride(pattern, launch)
        return _Verdict(code, f"{pattern.lane_text} are {pattern.lane_distance} bytes apart{text}")
    if pattern.execution_stride and abs(pattern.execution_stride) <= SECTOR:
        return _Verdict("PC102", _WALK)
    length = pattern.run_length * pattern.access.width
    if length >= SECTOR:
        return None
    if pattern.run_length < 2:
        return _Verdict("PC108", _SCATTERED)
    use = f"{pattern.run_text} use {length:.3g} of {SECTOR} bytes of a sector"
    return _Verdict("PC107", f"{use}; use more threads along x")


def _explain_stride(pattern: Pattern, launch: _LaunchPatterns) -> _Verdict:
    """Return the first cause that explains a lane stride; its text continues "lanes are 64 bytes apart"."""
    stride, width, line = pattern.lane_distance, pattern.access.width, pattern.access.source.line
    # Accesses less than one stride away, with their distances.
    fields = [(offset, field.access) for offset, field in launch.find_neighbours(pattern) if abs(offset) < stride]
    if count := _count_vector_parts(pattern, fields):
        text = f", and {count} accesses fill these bytes; use one of {stride}; ptxas may merge them already"
        return _Verdict("PC106", text)
    is_next_in_line = any(abs(offset) == width and field.source.line == line for offset, field in fields)
    unrolled = "loop iteration" if stride > SECTOR and is_next_in_line else ""
    if walker := pattern.find_unit_at_stride(width) or unrolled:
        text = f"exchange the axes of lane and {walker}, or use a tile in shared memory"
        return _Verdict("PC102", f"; the next {walker} is {width} bytes away; {text}")
    advice, pitch = "let neighbouring lanes access consecutive elements", launch.describe_pitch(pattern)
    if stride <= _MAX_STRUCT_BYTES and launch.has_row_stride(pattern):
        return _Verdict("PC103", f", {pitch}; {advice}, as with one array per column, or use shared memory")
    place_count = len({offset % stride for offset, _ in fields})
    if stride <= _MAX_STRUCT_BYTES and place_count > 1:
        fact = f"and {place_count} elements in each {stride} bytes are accessed"
        return _Verdict("PC103", f", {fact}; {advice}, as with one array per struct member, or use shared memory")
    if pitch:
        return _Verdict("PC102", f", {pitch}; let a warp access consecutive elements, or use a tile in shared memory")
    return _Verdict("PC101", f"; {advice}")


def _count_vector_parts(pattern: Pattern, fields: Sequence[tuple[int, Access]]) -> int:
    """Return the number of accesses that fill the bytes between lanes, if one vector can replace them; else 0.

    ``fields`` are accesses, also this one, and their distances from it.
    """
    access, stride, width = pattern.access, pattern.lane_distance, pattern.access.width
    offsets = sorted({offset for offset, field in fields if (field.kind, field.width) == (access.kind, width)})
    lowest_address = int(pattern.addresses[pattern.lanes].min()) + offsets[0]
    covers_gap = [offset - offsets[0] for offset in offsets] == list(range(0, stride, width))
    fits_vector = stride in (2 * width, 4 * width) and stride <= _MAX_ACCESS_BYTES and lowest_address % stride == 0
    return len(offsets) if covers_gap and fits_vector else 0


def _is_misaligned(pattern: Pattern, launch: _LaunchPatterns) -> bool:
    """Tell if warps at consecutive elements touch an extra sector because they start inside one.

    Not all accesses of a stencil can be aligned. So return False if successive executions overlap, if another access of
    `find_neighbours` begins lower, or if an access to this array with this lane stride is mostly aligned. Also return
    False if starts vary although all known strides are multiples of a sector.
    """
    access = pattern.access
    is_consecutive = pattern.lane_stride == access.width and pattern.run_length >= 16
    if not is_consecutive or access.sectors <= access.ideal_sectors:
        return False
    step = pattern.execution_stride
    overlaps = step is not None and 0 < abs(step) < LINE
    starts = _find_warp_starts(pattern)
    if not len(starts) or overlaps or min(offset for offset, _ in launch.find_neighbours(pattern)) < 0:
        return False
    array = launch.find_array(pattern)
    similar = [
        candidate
        for candidate in launch.patterns
        if candidate.lane_stride == pattern.lane_stride and launch.find_array(candidate) == array
    ]
    if any(np.count_nonzero(places) * 2 < len(places) for places in map(_find_warp_starts, similar)):
        return False
    has_one_start = not np.ptp(starts)
    strides = (pattern.warp_stride, pattern.block_stride, step)
    return has_one_start or any(stride is not None and stride % SECTOR for stride in strides)


def _find_warp_starts(pattern: Pattern) -> Array:
    """Return the byte offset of lane 0 within its sector, for each sampled request without inactive lanes."""
    return pattern.addresses[pattern.lanes.all(axis=1)][:, 0] % SECTOR


def _judge_narrow(pattern: Pattern, launch: _LaunchPatterns) -> _Verdict | None:
    """Advise vectors for consecutive elements of one or two bytes, if the access makes 10 % of the global requests."""
    access = pattern.access
    is_consecutive = pattern.lane_stride == access.width and pattern.run_length >= 16
    if access.width > 2 or not is_consecutive or access.requests < 0.1 * launch.requests:
        return None
    text = f"{count_noun(access.width, 'byte')} per lane, {access.width * 32} per request; use vectors of 4 bytes"
    return _Verdict("PC106", f"{text}; ptxas may merge the accesses already")
