"""The accesses to shared memory that ptxas makes of neighbouring ones, as in its machine code for sm_90 (nvcc 13.0.88).

Loads, or stores, that add different numbers to the same register become one of up to four elements and 16 bytes where
that begins at a multiple of its size and no other access to memory comes between. A load fetches one too many if it
needs three of four. Global memory, bytes and what is extended with a sign stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from .chunk import Chunk
from .flow import BasicBlock, reads_and_writes
from .operands import plus
from .program import TYPES, Address, Instruction, Operand
from .transactions import WORD, paired_wavefronts, total
from .values import Value, dense
from .warps import occupancy, spread

_WIDEST = 16
_KINDS = {"ld": "load", "st": "store"}
#: Instructions that no access is moved across.
_BETWEEN = {"st", "atom", "red", "bar", "barrier", "membar", "fence", "call", "cp"}


@dataclass(frozen=True)
class Neighbours:
    """Instructions that may be merged.

    Attributes
    ----------
    kind, size : str and int
        ``load`` or ``store``, and the bytes of each.
    members : dict
        By the number that each adds to the register, in the order of the code: the identity of the instruction.
    """

    kind: str
    size: int
    members: dict[int, int] = field(default_factory=dict)

    def pieces(self, phase: int) -> list[tuple[int, int]]:
        """Where each access begins that is made of them, and its bytes, if the register is ``phase`` modulo 16."""
        left, found = {*self.members}, []
        for parts in (4, 2):
            width = parts * self.size
            for start in sorted({(place + phase) // width * width - phase for place in left if width <= _WIDEST}):
                inside = {place for place in left if start <= place < start + width}
                if len(inside) >= parts - (self.kind == "load" and parts == 4):
                    found.append((start, width))
                    left -= inside
        return found + [(place, self.size) for place in sorted(left)]


def neighbours(code: Sequence[Instruction], blocks: Sequence[BasicBlock]) -> list[Neighbours]:
    """What may be merged in a kernel, and wide accesses by themselves."""
    found = [group for block in blocks for group in _of_block(code[block.start : block.stop])]
    return [group for group in found if len(group.members) > 1 or group.size > WORD]


def _of_block(code: Sequence[Instruction]) -> Iterator[Neighbours]:
    together: dict[tuple[str, int, Operand | None], Neighbours] = {}
    for one in code:
        key = _key(one)
        if key is None and one.opcode in _BETWEEN:
            together = {}
        elif key is not None and key[0] == "store":
            together = {each: group for each, group in together.items() if each == key}
        if key is not None:
            if key not in together:
                together[key] = Neighbours(*key[:2])
                yield together[key]
            where = one.operands[key[0] == "load"]
            together[key].members.setdefault(where.offset if isinstance(where, Address) else 0, id(one))
        written = {*reads_and_writes(one)[1]}
        together = {each: group for each, group in together.items() if getattr(each[2], "name", "") not in written}


def _key(one: Instruction) -> tuple[str, int, Operand | None] | None:
    """What instructions share that may be merged: their kind, their bytes and the register; None for all others."""
    kind, (space, *names) = _KINDS.get(one.opcode), one.modifiers or ("",)
    if kind is None or space != "shared" or one.guard is not None or len(one.operands) != 2:
        return None
    where, vector = one.operands[kind == "load"], {"v2": 2, "v4": 4}.get(names[0], 1)
    element = TYPES.get(names[-1])
    if len(names) != 1 + (vector > 1) or element is None or not isinstance(where, Address):
        return None
    signed = element.kind == "s" and element.size < WORD
    return None if signed or element.size == 1 else (kind, element.size * vector, where.base)


class Merged:
    """Counts what ptxas would make of some instructions, each time that the first of them is executed."""

    def __init__(self, group: Neighbours) -> None:
        self.kind, self.requests, self.wavefronts = group.kind, 0, 0
        self._group, self._first = group, next(iter(group.members))

    def record(self, chunk: Chunk, place: Value) -> None:
        """Count an execution by the active threads of a chunk, from the first instruction's addresses."""
        whole = dense(place)
        phases = spread(whole, chunk.shape)[spread(chunk.active, chunk.shape)] - self._first & (_WIDEST - 1)
        alike = (phases == phases[0]).all()
        single = [(offset, self._group.size) for offset in self._group.members]
        for start, width in self._group.pieces(int(phases[0])) if alike else single:
            shift = np.full((1, 1), start - self._first, f"i{whole.itemsize}")
            where = plus(TYPES[f"u{8 * whole.itemsize}"], place, shift)
            self.requests += occupancy(chunk.active, chunk.shape).requests
            self.wavefronts += total(paired_wavefronts, where, chunk.active, chunk.shape, width)
