"""What is wrong with the accesses of a launch, in words. Each rule is a row of ptxcount/ADVICE.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..counting.counters import LaunchCounters
from ..counting.transactions import LINE, SECTOR
from ..lanes.warps import Array
from ..machine.argument_layout import Given
from ..report.patterns import Pattern, find_array_name, find_pattern
from . import banks

#: Accesses alike are worth a word from this part of the launch's sectors.
_PART = 0.02
#: Bytes of the widest access of a thread, and of the largest struct.
_WIDEST = 16
_STRUCT = 128


class Advice(NamedTuple):
    """A code and a text, and the files and lines with that cause: first the one where it costs most."""

    code: str
    text: str
    places: list[tuple[str | None, int | None]]


class _Launch:
    """The patterns of a launch, and what is known of its arrays."""

    def __init__(self, counters: LaunchCounters, given: Sequence[Given], words: Sequence[str]) -> None:
        found = [find_pattern(each) for each in counters.accesses if each.kind in ("load", "store")]
        self.patterns = [each for each in found if each is not None]
        self.requests = sum(each.requests for each in counters.accesses if each.space == "global")
        self._arrays, self._words = counters.arrays, words
        self._shapes = {f"argument {n}": each for n, each in enumerate(given) if isinstance(each, np.ndarray)}
        self._scalars = [int(each) for each in given if isinstance(each, np.integer)]
        self._moved = Counter[tuple[str, str, int | None]]()
        for one in self.patterns:
            for alike in self._alike(one):
                self._moved[alike] += one.access.sectors

    def array(self, one: Pattern) -> str:
        """What the counters call the array of an access."""
        return find_array_name(one.access, self._arrays)

    def matters(self, one: Pattern) -> bool:
        """Whether accesses to the array with this distance, or at this line, have their part of what is moved."""
        every = sum(each.access.sectors for each in self.patterns)
        return any(self._moved[alike] >= _PART * every for alike in self._alike(one))

    def _alike(self, one: Pattern) -> list[tuple[str, str, int | None]]:
        return [(self.array(one), "lane", one.lane), (self.array(one), "line", one.access.source.line)]

    def name(self, one: Pattern) -> str:
        """What the launch calls an array."""
        return find_array_name(one.access, self._arrays, self._words) or f"{one.access.space} memory"

    def beside(self, one: Pattern) -> list[tuple[int, Pattern]]:
        """The accesses of the array with the same distance of lanes, and where they are seen from this one."""
        found = []
        for each in self.patterns:
            if each.access.space == "global" and each.lane == one.lane and self.array(each) == self.array(one):
                offset = one.measure_offset(each)
                if offset is not None and abs(offset) < LINE:
                    found.append((offset, each))
        return found

    def pitch(self, one: Pattern) -> str:
        """What the distance of lanes is: that of an axis, or a sector or more as a scalar says; else nothing."""
        if self.is_row(one):
            return f"a row of {self.name(one)} as declared"
        scalars = self._scalars if one.stride >= SECTOR else []
        return next((f"as the argument {n} says" for n in scalars if n * one.access.width == one.stride), "")

    def is_row(self, one: Pattern) -> bool:
        """Whether lanes are as far apart as neighbours along an axis of the array as declared, but the last."""
        array = self._shapes.get(self.array(one))
        return array is not None and one.stride in array.strides[:-1]


def advice(counters: LaunchCounters, given: Sequence[Given], words: Sequence[str]) -> Iterator[Advice]:
    """The advice on a launch, in the order of the PTX; accesses alike to one array are one, said where most is."""
    launch = _Launch(counters, given, words)
    causes: dict[tuple[str, object], list[tuple[Pattern, str]]] = {}
    known = set()
    for one in launch.patterns:
        access = one.access
        found = _shared(one, launch) if access.space == "shared" else _global(one, launch)
        place = (access.source.file, access.source.line, access.space, access.kind, launch.array(one))
        if found and place not in known:
            known.add(place)
            code, text = found
            why = (*place[2:], access.width, one.lane, text.partition("; ")[2] * (access.space == "shared"))
            causes.setdefault((code, why), []).append((one, f"{access.kind} of {launch.name(one)}: {text}"))
    for (code, _), alike in causes.items():
        worst = max(alike, key=lambda each: each[0].access.sectors + each[0].access.wavefronts)
        places = [(each.access.source.file, each.access.source.line) for each, _ in (worst, *alike)]
        yield Advice(code, worst[1], list(dict.fromkeys(places)))


def _shared(one: Pattern, launch: _Launch) -> tuple[str, str] | None:
    if one.access.bank_conflicts < one.access.requests * 0.5:
        return None
    return "PC105", banks.text(one, [each for each in launch.patterns if each.access.space == "shared"])


def _global(one: Pattern, launch: _Launch) -> tuple[str, str] | None:
    access = one.access
    if access.space != "global" or not launch.matters(one):
        return None
    found = _wasteful(one, launch) if one.wasteful else None
    found = found or (("PC104", _MISALIGNED) if _is_misaligned(one, launch) else None)
    if found is None:
        return _narrow(one, launch)
    each, ideal = (count / access.requests for count in (access.sectors, access.ideal_sectors))
    return found[0], f"{found[1]} ({each:.3g} sectors a request, ideal {ideal:.3g})"


_MISALIGNED = f"each warp begins within a sector: let the data and its rows begin at multiples of {SECTOR} bytes"
_WALK = "each lane walks along a row of its own: let the lanes of a warp go along one row"
_SCATTERED = (
    "lanes have no common distance, as of indices from memory, or in loops out of step: sort or group them, or stage "
    "the data in shared memory"
)


def _wasteful(one: Pattern, launch: _Launch) -> tuple[str, str] | None:
    """Why a request takes more sectors than its bytes fill: far lanes, walking lanes, short rows, or no pattern."""
    if one.stride >= 2 * one.access.width:
        code, text = _strided(one, launch)
        return code, f"neighbouring lanes are {one.stride} bytes apart{text}"
    if one.step and abs(one.step) <= SECTOR:
        return "PC102", _WALK
    length = one.run * one.access.width
    if length >= SECTOR:
        return None
    if one.run < 2:
        return "PC108", _SCATTERED
    text = f"{one.run:.2g} neighbouring lanes follow each other, {length:.3g} bytes of a sector of {SECTOR}"
    return "PC107", f"{text}: give a row of the block more threads"


def _strided(one: Pattern, launch: _Launch) -> tuple[str, str]:
    """The reason of a distance between lanes: the first of these that the addresses show."""
    access, stride, width = one.access, one.stride, one.access.width
    fields = [(at, each.access) for at, each in launch.beside(one) if abs(at) < stride]
    alike = sorted({at for at, each in fields if (each.kind, each.width) == (access.kind, width)})
    first = int(one.rows[one.lanes].min()) + alike[0]
    whole = [at - alike[0] for at in alike] == list(range(0, stride, width)) and first % stride == 0
    if whole and stride in (2 * width, 4 * width) and stride <= _WIDEST:
        text = f", and {len(alike)} accesses touch all of it: one of {stride} bytes would do; ptxas may do so already"
        return "PC106", text
    line = access.source.line
    unrolled = stride > SECTOR and any(abs(at) == width and each.source.line == line for at, each in fields)
    if who := one.find_walker(width) or ("execution" if unrolled else ""):
        text = f"; the next {who} is {width} bytes on: let lanes go along it, or go through a tile in shared memory"
        return "PC102", text
    others, pitch = len({at for at, _ in fields if at}), launch.pitch(one)
    if stride <= _STRUCT and (others or launch.is_row(one)):
        members = f"{others + 1} places in them are touched" if others else pitch
        text = "let neighbouring lanes touch neighbouring elements, as of an array for each member"
        return "PC103", f", {'and ' * bool(others)}{members}: {text}, or go through shared memory"
    if pitch:
        return "PC102", f", {pitch}: keep what a warp takes side by side, or go through a tile in shared memory"
    return "PC101", ": neighbouring lanes should touch neighbouring elements"


def _is_misaligned(one: Pattern, launch: _Launch) -> bool:
    """Whether whole warps over neighbouring elements begin within a sector, and no other of the array does not."""
    if one.lane != one.access.width or one.run < 16 or one.access.sectors <= one.access.ideal_sectors:
        return False
    alike = [each for each in launch.patterns if each.lane == one.lane and launch.array(each) == launch.array(one)]
    window = one.step is not None and 0 < abs(one.step) < LINE
    starts = _starts(one)
    if not len(starts) or window or min(at for at, _ in launch.beside(one)) < 0:
        return False
    if any(np.count_nonzero(each) * 2 < len(each) for each in map(_starts, alike)):
        return False
    return not np.ptp(starts) or any(each is not None and each % SECTOR for each in (one.warp, one.block, one.step))


def _starts(one: Pattern) -> Array:
    """Where in a sector whole warps begin."""
    return one.rows[one.lanes.all(axis=1)][:, 0] % SECTOR


def _narrow(one: Pattern, launch: _Launch) -> tuple[str, str] | None:
    access = one.access
    if access.width > 2 or one.lane != access.width or one.run < 16 or access.requests < 0.1 * launch.requests:
        return None
    text = f"{access.width} bytes a lane, {access.width * 32} a request: vectors such as uchar4"
    return "PC106", f"{text} would take fewer requests; ptxas may do so already"
