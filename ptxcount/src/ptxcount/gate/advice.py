"""What is wrong with the accesses of a launch, in words. Each rule is a row of docs/advice.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..counters import Access, LaunchCounters
from ..execute import Given
from ..transactions import LINE, SECTOR
from . import banks
from .patterns import Pattern, pattern

#: An access is worth a word from this many times the sectors that it needs, and this part of the launch's.
_WASTEFUL = 1.5
_PART = 0.02
#: Bytes of the widest access of a thread, and of the largest struct.
_WIDEST = 16
_STRUCT = 128
#: The file, the line, the code and the text.
Said = tuple["str | None", "int | None", str, str]


class _Launch:
    """The patterns of a launch, and what is known of its arrays."""

    def __init__(self, counters: LaunchCounters, given: Sequence[Given], words: Sequence[str]) -> None:
        found = [pattern(each) for each in counters.accesses if each.kind in ("load", "store")]
        self.patterns = [each for each in found if each is not None]
        self.moved = sum(each.sectors for each in counters.accesses if each.space == "global")
        self.requests = sum(each.requests for each in counters.accesses if each.space == "global")
        self._arrays = counters.arrays
        self._names = {f"argument {n}": word.partition("=")[0] for n, word in enumerate(words)}
        self._shapes = {f"argument {n}": each for n, each in enumerate(given) if isinstance(each, np.ndarray)}
        self._scalars = [int(each) for each in given if isinstance(each, np.integer)]

    def array(self, one: Pattern) -> str:
        """What the counters call the array of an access."""
        place = int(one.rows[0][one.lanes[0]][0])
        return next((name for first, size, name in self._arrays if first <= place < first + size), "")

    def named(self, one: Pattern) -> str:
        """An access in words."""
        name = self.array(one)
        return f"{one.access.kind} of {self._names.get(name, name) or 'memory'}"

    def beside(self, one: Pattern) -> dict[int, Pattern]:
        """Other accesses of the array with the same distance of lanes, by where they are seen from this one."""
        found: dict[int, Pattern] = {}
        for each in self.patterns:
            if each.access.space == "global" and each.lane == one.lane and self.array(each) == self.array(one):
                offset = one.offset(each)
                if offset is not None and abs(offset) < LINE:
                    found.setdefault(offset, each)
        return found

    def axes(self, one: Pattern) -> list[int]:
        """The bytes between neighbours along each axis of the array, as it was declared."""
        array = self._shapes.get(self.array(one))
        return [] if array is None else list(array.strides)

    def is_pitch(self, one: Pattern) -> bool:
        """Whether the distance of lanes is that of an axis, or so many elements as a scalar says."""
        return one.stride in self.axes(one)[:-1] or any(n * one.access.width == one.stride for n in self._scalars)


def advice(counters: LaunchCounters, given: Sequence[Given], words: Sequence[str]) -> Iterator[Said]:
    """The advice on a launch: file, line, code and text of each, in the order of the PTX."""
    launch = _Launch(counters, given, words)
    for one in launch.patterns:
        said = _shared(one, launch) if one.access.space == "shared" else _global(one, launch)
        if said:
            yield one.access.source.file, one.access.source.line, *said


def _shared(one: Pattern, launch: _Launch) -> tuple[str, str] | None:
    access = one.access
    if access.bank_conflicts < access.requests * 0.5:
        return None
    return "PC105", banks.text(one, [each for each in launch.patterns if each.access.space == "shared"])


def _global(one: Pattern, launch: _Launch) -> tuple[str, str] | None:
    access = one.access
    if access.space != "global" or access.sectors < _PART * launch.moved:
        return None
    if one.excess >= _WASTEFUL and one.stride >= 2 * access.width:
        return _strided(one, launch)
    if one.excess >= _WASTEFUL and one.run * access.width < SECTOR:
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
    fields = {offset: each for offset, each in launch.beside(one).items() if abs(offset) < stride}
    alike = sorted(at for at, each in fields.items() if (each.access.kind, each.access.width) == (access.kind, width))
    first = int(one.rows[one.lanes].min()) + alike[0]
    whole = [at - alike[0] for at in alike] == list(range(0, stride, width)) and first % stride == 0
    if whole and stride in (2 * width, 4 * width) and stride <= _WIDEST:
        text = f", and {len(alike)} accesses touch all of it: one of {stride} bytes would do; ptxas may do so already"
        return "PC106", head + text + tail
    line = access.source.line
    unrolled = stride > SECTOR and any(
        abs(at) == width and each.access.source.line == line for at, each in fields.items()
    )
    who = one.walks(width) or ("execution" if unrolled else "")
    if who:
        text = f"; the next {who} is {width} bytes on: let lanes go along it, or go through a tile in shared memory"
        return "PC102", head + text + tail
    if stride <= _STRUCT and (len(fields) > 1 or stride in launch.axes(one)[:-1]):
        text = ", the size of a struct: keep an array for each member, or move whole structs through shared memory"
        return "PC103", head + text + tail
    if launch.is_pitch(one):
        text = ", a row of the array: exchange the indices of row and column, or go through a tile in shared memory"
        return "PC102", head + text + tail
    return "PC101", f"{head}: neighbouring lanes should touch neighbouring elements{tail}"


def _short(one: Pattern, launch: _Launch) -> str:
    width = one.access.width
    text = f"{launch.named(one)}: {one.run:.2g} neighbouring lanes follow each other, {one.run * width:.3g} bytes"
    return f"{text} of a sector of {SECTOR}: give a row of the block more threads ({_cost(one.access)})"


def _scattered(one: Pattern, launch: _Launch) -> str:
    text = f"{launch.named(one)}: lanes have no common distance, as of indices from memory: sort or group them"
    return f"{text}, or stage the data in shared memory ({_cost(one.access)})"


def _misaligned(one: Pattern, launch: _Launch) -> tuple[str, str] | None:
    """Whole warps over neighbouring elements that begin within a sector; not beside an access that does not."""
    full = one.lanes.all(axis=1)
    if one.lane != one.access.width or one.run < 16 or not full.any():
        return None
    starts = one.rows[full][:, 0] % SECTOR
    if np.count_nonzero(starts) * 2 < len(starts):
        return None
    beside = launch.beside(one)
    aligned = any(not np.any(each.rows[:, 0] % SECTOR) for each in beside.values())
    window = one.step is not None and 0 < abs(one.step) < LINE
    if aligned or window or min(beside) < 0:
        return None
    if np.all(starts == starts[0]):
        where = f"begins {starts[0]} bytes behind the start of a sector: pad or shift the data"
    elif any(each is not None and each % SECTOR for each in (one.warp, one.block, one.step)):
        where = f"begins anywhere in a sector: give rows a pitch that is a multiple of {SECTOR} bytes"
    else:
        return None
    return "PC104", f"{launch.named(one)}: each warp {where} ({_cost(one.access)})"


def _narrow(one: Pattern, launch: _Launch) -> tuple[str, str] | None:
    access = one.access
    if access.width > 2 or one.lane != access.width or one.run < 16 or access.requests < 0.1 * launch.requests:
        return None
    text = f"{launch.named(one)}: {access.width} bytes a lane, {access.width * 32} a request: vectors such as uchar4"
    return "PC106", f"{text} would take fewer requests; ptxas may do so already"
