"""What is wrong with the accesses of a launch, in words. Each rule is a row of ptxcount/ADVICE.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..counters import Access, LaunchCounters
from ..given import Given
from ..patterns import Pattern, array_of, pattern
from ..transactions import LINE, SECTOR
from ..warps import Array
from . import banks

#: Accesses alike are worth a word from this part of the launch's sectors.
_PART = 0.02
#: Bytes of the widest access of a thread, and of the largest struct.
_WIDEST = 16
_STRUCT = 128
Place = tuple["str | None", "int | None"]


class Advice(NamedTuple):
    """A code and a text, the file and line that they are said at, and all that have the same cause."""

    code: str
    text: str
    place: Place
    places: list[Place]


class _Launch:
    """The patterns of a launch, and what is known of its arrays."""

    def __init__(self, counters: LaunchCounters, given: Sequence[Given], words: Sequence[str]) -> None:
        found = [pattern(each) for each in counters.accesses if each.kind in ("load", "store")]
        self.patterns = [each for each in found if each is not None]
        self._moved = Counter[tuple[str, str, int | None]]()
        self._all = 0
        self.requests = sum(each.requests for each in counters.accesses if each.space == "global")
        self._arrays, self._words = counters.arrays, words
        self._shapes = {f"argument {n}": each for n, each in enumerate(given) if isinstance(each, np.ndarray)}
        for one in self.patterns:
            self._all += one.access.sectors
            for alike in self._alike(one):
                self._moved[alike] += one.access.sectors
        self._scalars = [int(each) for each in given if isinstance(each, np.integer)]

    def array(self, one: Pattern) -> str:
        """What the counters call the array of an access."""
        return array_of(one.access, self._arrays)

    def matters(self, one: Pattern) -> bool:
        """Whether accesses to the array with this distance, or at this line, have their part of what is moved."""
        return any(self._moved[alike] >= _PART * self._all for alike in self._alike(one))

    def _alike(self, one: Pattern) -> list[tuple[str, str, int | None]]:
        return [(self.array(one), "lane", one.lane), (self.array(one), "line", one.access.source.line)]

    def named(self, one: Pattern) -> str:
        """An access in words."""
        return f"{one.access.kind} of {self.name(one)}"

    def name(self, one: Pattern) -> str:
        """What the launch calls an array."""
        return array_of(one.access, self._arrays, self._words) or f"{one.access.space} memory"

    def beside(self, one: Pattern) -> list[tuple[int, Pattern]]:
        """The accesses of the array with the same distance of lanes, and where they are seen from this one."""
        found = []
        for each in self.patterns:
            if each.access.space == "global" and each.lane == one.lane and self.array(each) == self.array(one):
                offset = one.offset(each)
                if offset is not None and abs(offset) < LINE:
                    found.append((offset, each))
        return found

    def axes(self, one: Pattern) -> list[int]:
        """The bytes between neighbours along each axis of the array, as it was declared."""
        array = self._shapes.get(self.array(one))
        return [] if array is None else list(array.strides)

    def pitch(self, one: Pattern) -> str:
        """What the distance of lanes is: that of an axis, or a sector or more as a scalar says; else nothing."""
        if one.stride in self.axes(one)[:-1]:
            return f"a row of {self.name(one)} as declared"
        scalars = self._scalars if one.stride >= SECTOR else []
        return next((f"as the argument {n} says" for n in scalars if n * one.access.width == one.stride), "")


def advice(counters: LaunchCounters, given: Sequence[Given], words: Sequence[str]) -> Iterator[Advice]:
    """The advice on a launch, in the order of the PTX; accesses alike to one array are one, said where most is."""
    launch = _Launch(counters, given, words)
    causes: dict[tuple[object, ...], list[tuple[Pattern, str]]] = {}
    known = set()
    for one in launch.patterns:
        shared = one.access.space == "shared"
        said = _shared(one, launch) if shared else _global(one, launch)
        place = (one.access.source.file, one.access.source.line, one.access.space, one.access.kind, launch.array(one))
        if said and place not in known:
            known.add(place)
            code, text = said
            why = (code, *place[2:], one.access.width, one.lane, text.partition("; ")[2] if shared else "")
            causes.setdefault(why, []).append((one, text))
    for cause, found in causes.items():
        worst, text = max(found, key=lambda each: each[0].access.sectors + each[0].access.wavefronts)
        places = [(each.access.source.file, each.access.source.line) for each, _ in found]
        yield Advice(
            str(cause[0]), text, (worst.access.source.file, worst.access.source.line), list(dict.fromkeys(places))
        )


def _shared(one: Pattern, launch: _Launch) -> tuple[str, str] | None:
    access = one.access
    if access.bank_conflicts < access.requests * 0.5:
        return None
    every = [each for each in launch.patterns if each.access.space == "shared"]
    return "PC105", f"{launch.named(one)}: {banks.text(one, every)}"


def _global(one: Pattern, launch: _Launch) -> tuple[str, str] | None:
    access = one.access
    if access.space != "global" or not launch.matters(one):
        return None
    if one.wasteful and one.stride >= 2 * access.width:
        return _strided(one, launch)
    if one.wasteful and one.step and abs(one.step) <= SECTOR:
        text = f"{launch.named(one)}: each lane walks along a row of its own"
        return "PC102", f"{text}: let the lanes of a warp go along one row ({_cost(access)})"
    if one.wasteful and one.run * access.width < SECTOR:
        short = one.run >= 2
        return ("PC107", _short(one, launch)) if short else ("PC108", _scattered(one, launch))
    return _misaligned(one, launch) or _narrow(one, launch)


def _cost(access: Access) -> str:
    each, ideal = (count / access.requests for count in (access.sectors, access.ideal_sectors))
    return f"{each:.3g} sectors a request, ideal {ideal:.3g}"


def _strided(one: Pattern, launch: _Launch) -> tuple[str, str]:
    """The reason of a distance between lanes: the first of these that the addresses show."""
    access, stride = one.access, one.stride
    width, head = access.width, f"{launch.named(one)}: neighbouring lanes are {one.stride} bytes apart"
    tail = f" ({_cost(access)})"
    fields = [(at, each.access) for at, each in launch.beside(one) if abs(at) < stride]
    alike = sorted({at for at, each in fields if (each.kind, each.width) == (access.kind, width)})
    first = int(one.rows[one.lanes].min()) + alike[0]
    whole = [at - alike[0] for at in alike] == list(range(0, stride, width)) and first % stride == 0
    if whole and stride in (2 * width, 4 * width) and stride <= _WIDEST:
        text = f", and {len(alike)} accesses touch all of it: one of {stride} bytes would do; ptxas may do so already"
        return "PC106", head + text + tail
    line = access.source.line
    unrolled = stride > SECTOR and any(abs(at) == width and each.source.line == line for at, each in fields)
    who = one.walks(width) or ("execution" if unrolled else "")
    if who:
        text = f"; the next {who} is {width} bytes on: let lanes go along it, or go through a tile in shared memory"
        return "PC102", head + text + tail
    others = len({at for at, _ in fields if at})
    declared = stride in launch.axes(one)[:-1]
    if stride <= _STRUCT and (others or declared):
        members = f", and {others + 1} places in them are touched" if others else f", {launch.pitch(one)}"
        text = (
            "let neighbouring lanes touch neighbouring elements, as of an array for each member, or go through shared"
        )
        return "PC103", f"{head}{members}: {text} memory{tail}"
    if pitch := launch.pitch(one):
        text = "keep what a warp takes side by side, or go through a tile in shared memory"
        return "PC102", f"{head}, {pitch}: {text}{tail}"
    return "PC101", f"{head}: neighbouring lanes should touch neighbouring elements{tail}"


def _short(one: Pattern, launch: _Launch) -> str:
    width = one.access.width
    text = f"{launch.named(one)}: {one.run:.2g} neighbouring lanes follow each other, {one.run * width:.3g} bytes"
    return f"{text} of a sector of {SECTOR}: give a row of the block more threads ({_cost(one.access)})"


def _scattered(one: Pattern, launch: _Launch) -> str:
    text = f"{launch.named(one)}: lanes have no common distance, as of indices from memory, or in loops out of step"
    return f"{text}: sort or group them, or stage the data in shared memory ({_cost(one.access)})"


def _misaligned(one: Pattern, launch: _Launch) -> tuple[str, str] | None:
    """Whole warps over neighbouring elements that begin within a sector, where no other of the array does not."""
    if one.lane != one.access.width or one.run < 16 or one.access.sectors <= one.access.ideal_sectors:
        return None
    alike = [each for each in launch.patterns if each.lane == one.lane and launch.array(each) == launch.array(one)]
    window = one.step is not None and 0 < abs(one.step) < LINE
    starts = _starts(one)
    if not len(starts) or window or min(at for at, _ in launch.beside(one)) < 0:
        return None
    if any(np.count_nonzero(each) * 2 < len(each) for each in map(_starts, alike)):
        return None
    if np.ptp(starts) and not any(each is not None and each % SECTOR for each in (one.warp, one.block, one.step)):
        return None
    text = f"each warp begins within a sector: let the data and its rows begin at multiples of {SECTOR} bytes"
    return "PC104", f"{launch.named(one)}: {text} ({_cost(one.access)})"


def _starts(one: Pattern) -> Array:
    """Where in a sector whole warps begin."""
    return one.rows[one.lanes.all(axis=1)][:, 0] % SECTOR


def _narrow(one: Pattern, launch: _Launch) -> tuple[str, str] | None:
    access = one.access
    if access.width > 2 or one.lane != access.width or one.run < 16 or access.requests < 0.1 * launch.requests:
        return None
    text = f"{launch.named(one)}: {access.width} bytes a lane, {access.width * 32} a request: vectors such as uchar4"
    return "PC106", f"{text} would take fewer requests; ptxas may do so already"
