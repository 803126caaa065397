"""Races in global memory: threads that meet at one place, one of them writing, with nothing between that orders them.

What orders are barriers of the block, and atomics and loads that are volatile, relaxed or acquire, of any thread of the
block that comes later; and ``bar.warp.sync`` the lanes of its mask (of several readers of a place the last one's time
counts). So a race is not seen where a block does one of these for another purpose, nor between an atomic
and a plain access, nor in what textures, bulk copies and tensor cores access. Of an array that the kernel only stores
to, only the threads of one store are compared, in the first 16 that a chunk of blocks makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..lanes.warps import LANES, Array
from ..ptx.program import Address, Instruction, Operand, Register, Symbol, leaves
from ..util.errors import Source

_TIME, _THREAD = 32, (1 << 32) - 1
#: Several threads have read a place.
_MANY = _THREAD
#: Several threads of one warp have: with the number of its first thread.
_LANES_OF = 1 << 31
#: What is reached through an address that was read from memory.
ANYTHING = "*"


@dataclass(frozen=True)
class WarpOrder:
    """The order that barriers of warps make before an access."""

    #: The lane of each thread, and the lanes of its warp.
    lanes: Array
    count: Array
    #: The times that each knows of the lanes of its warp (`warp_clocks`), (threads, 1 or 32).
    known: Array

    def first(self, me: Array) -> Array:
        """The number of the first thread of each thread's warp."""
        return np.asarray(me - self.lanes[:, None])

    def lane_of(self, who: Array, me: Array) -> tuple[Array, Array]:
        """The lanes that other threads have in each thread's warp, and whether they are there."""
        lane = who - self.first(me)
        return lane, (lane >= 0) & (lane < self.count[:, None])

    def orders(self, who: Array, when: Array, several: Array | None, me: Array) -> Array:
        """Whether it orders others, or several lanes of the warp that bits name, at some times before each thread."""
        lane, inside = self.lane_of(who, me)
        of_lanes = who == (_LANES_OF | self.first(me))
        if several is None:  # all lanes know the same
            return np.asarray((inside | of_lanes) & (when <= self.known))
        one = when <= np.take_along_axis(self.known, np.where(inside, lane, 0), axis=1)
        late = np.zeros(who.shape, bool)
        for other in range(LANES) if of_lanes.any() else ():
            foreign = (several >> np.uint32(other) & 1).astype(bool) & (self.lanes != other)[:, None]
            late |= foreign & (when > self.known[:, other, None])
        return np.asarray(inside & one | of_lanes & ~late)


@dataclass(frozen=True)
class Meeting:
    """An access of a chunk, and all that says whether it races."""

    #: Of the access; later ones have more.
    time: int
    #: The number of each thread in the launch, from 1 on, and when its block was last ordered behind others.
    threads: Array
    ordered: Array
    #: Whether a store that changes nothing races, too.
    strict: bool
    #: The line of each access, by its time.
    sources: Mapping[int, Source] = field(default_factory=dict)
    #: None without barriers of warps.
    warp: WarpOrder | None = None


class Watched:
    """Who read and wrote each place of an array last, in units of its smallest access."""

    def __init__(self, data: Array, name: str) -> None:
        self._data, self._name, self._unit = data, name, 0
        self._read = self._written = np.zeros(0, np.int64)
        #: The lanes that have read a place, if they are several of one warp; none where lanes are not told apart.
        self._lanes: Array | None = None

    def _units(self, index: Array, width: int) -> Array:
        """The places of accesses of so many bytes, (accesses, places of each)."""
        if not self._unit:
            self._unit = width
            self._read, self._written = (np.zeros(-(-self._data.size // width), np.int64) for _ in range(2))
        if width < self._unit:
            times, self._unit = self._unit // width, width
            self._read, self._written = self._read.repeat(times), self._written.repeat(times)
            self._lanes = None if self._lanes is None else self._lanes.repeat(times)
        each = width // self._unit
        return np.asarray(index[:, None] * each + np.arange(each))

    def load(self, index: Array, width: int, meeting: Meeting) -> tuple[int, str] | None:
        """Note a read of places of so many bytes by some threads; the first that races, and what to say of it."""
        places = self._units(index, width)
        me = meeting.threads[:, None]
        wrote = self._written[places]
        found = self._said(self._unordered(wrote, me, meeting), places, width, "load", "wrote", wrote, meeting)
        before, now = self._read[places], np.broadcast_to(me | meeting.time << _TIME, places.shape)
        self._read[places] = now
        many = (self._read[places] != now) | self._unordered(before, me, meeting, self._several(places))
        if meeting.warp is not None and many.any():
            many = self._note_lanes(places, before, many, me, meeting)
        self._read[places[many]] = _MANY | meeting.time << _TIME
        return found

    def _several(self, places: Array) -> Array | None:
        return None if self._lanes is None else self._lanes[places]

    def _note_lanes(self, places: Array, before: Array, many: Array, me: Array, meeting: Meeting) -> Array:
        """Note where several lanes of one warp have read; where others have read as well."""
        warp, several, who = meeting.warp, self._several(places), before & _THREAD
        assert warp is not None
        if warp.known.shape[1] > 1 and several is None:
            self._lanes = np.zeros(len(self._read), np.uint32)
            several = self._lanes[places]
        first = np.broadcast_to(_LANES_OF | warp.first(me), places.shape)
        lane, inside = warp.lane_of(who, me)
        of_lanes = who == first
        earlier = self._unordered(before, me, meeting, several)
        value = first | meeting.time << _TIME
        mine = self._read[places]
        self._read[places] = value
        others = (self._read[places] != value) | earlier & ~inside & ~of_lanes
        self._read[places] = mine
        self._read[places[many]] = value[many]
        if self._lanes is not None and several is not None:
            bit = np.uint32(1)
            kept = np.where(of_lanes, several, np.where(inside, bit << (lane % LANES).astype(np.uint32), 0))
            self._lanes[places] = 0
            own = bit << warp.lanes[:, None].astype(np.uint32)
            np.bitwise_or.at(self._lanes, places, np.where(earlier, kept, 0).astype(np.uint32) | own)
        return np.asarray(others)

    def store(
        self, index: Array, width: int, values: Sequence[Array], cells: Array, meeting: Meeting
    ) -> tuple[int, str] | None:
        """Note a write of values to places, before it is done; as `load`."""
        places, me = self._units(index, width), meeting.threads[:, None]
        changes = np.ones((len(index), 1), bool)
        if not meeting.strict:
            first = index * len(values)
            changes = np.logical_or.reduce([cells[first + k] != value for k, value in enumerate(values)])[:, None]
        was_read, was_written = self._read[places], self._written[places]
        read = self._unordered(was_read, me, meeting, self._several(places)) & changes
        written = self._unordered(was_written, me, meeting) & changes
        self._written[places] = np.broadcast_to(me | meeting.time << _TIME, places.shape)
        together = (self._written[places] & _THREAD) != me
        if together.any() and not meeting.strict:
            _, one, which = np.unique(index, return_index=True, return_inverse=True)
            differs = np.logical_or.reduce([value != value[one][which.ravel()] for value in values])
            together &= np.isin(index, index[differs])[:, None]
        found = self._said(together, places, width, "store", "writes")
        found = found or self._said(written, places, width, "store", "wrote", was_written, meeting)
        return found or self._said(read, places, width, "store", "read", was_read, meeting)

    @staticmethod
    def _unordered(before: Array, me: Array, meeting: Meeting, several: Array | None = None) -> Array:
        """Whether another thread was there, or several lanes of a warp, and nothing orders this one behind them."""
        who, when = before & _THREAD, before >> _TIME
        race = np.asarray((before != 0) & (who != me) & (when > meeting.ordered[:, None]))
        if meeting.warp is None or not race.any():
            return race
        if several is None and meeting.warp.known.shape[1] > 1:
            several = np.zeros(who.shape, np.uint32)
        return race & ~meeting.warp.orders(who, when, several, me)

    def _said(
        self,
        race: Array,
        places: Array,
        width: int,
        kind: str,
        did: str,
        before: Array | None = None,
        meeting: Meeting | None = None,
    ) -> tuple[int, str] | None:
        """The first access that races, and what to say of it; with the line of the other, where that is another."""
        if not race.any():
            return None
        access, place = (int(axis[0]) for axis in np.nonzero(race))
        byte = int(places[access, place]) * self._unit
        text = f"{kind} of {width} bytes at byte {byte} of {self._name}, which another thread {did} as well"
        if before is not None and meeting is not None and meeting.sources:
            text += f", at {meeting.sources[int(before[access, place]) >> _TIME]}"
        return access, text


def reached(code: Sequence[Instruction]) -> tuple[set[str], set[str]]:
    """The parameters and variables that addresses of loads, and of stores, are made of; `ANYTHING` if that is open."""
    sources: dict[str, frozenset[str]] = {}
    changed = True
    while changed:
        changed = False
        for one in code:
            found = _made_of(one, sources) if one.writes else frozenset()
            for name in one.writes:
                before = sources.get(name, frozenset())
                if not found <= before:
                    sources[name], changed = before | found, True
    through: tuple[set[str], set[str]] = (set(), set())
    for one in code:
        if one.opcode in ("ld", "st") and not {"shared", "local", "param", "const"} & {*one.modifiers}:
            for each in one.operands:
                if isinstance(each, Address):
                    through[one.opcode == "st"].update(_behind(each, sources))
    return through


def _made_of(one: Instruction, sources: dict[str, frozenset[str]]) -> frozenset[str]:
    if one.opcode in ("ld", "ldu", "atom") and "param" not in one.modifiers:
        return frozenset({ANYTHING} if {"u64", "b64", "s64"} & {*one.modifiers} else ())
    return frozenset().union(*(_behind(each, sources) for each in one.operands[1:]))


def _behind(operand: Operand, sources: dict[str, frozenset[str]]) -> frozenset[str]:
    found = frozenset(each.name for each in leaves(operand) if isinstance(each, Symbol))
    registers = (each.name for each in leaves(operand) if isinstance(each, Register))
    return found.union(*(sources.get(name, frozenset()) for name in registers))
