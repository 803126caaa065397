"""The accesses to shared memory that ptxas makes of neighbouring ones, as in its machine code for sm_90 (nvcc 13.0.88).

Loads, or stores, that add different numbers to the same register become one of up to four elements and 16 bytes where
that surely begins at a multiple of its size (`residues`) and no other access to memory comes between. A load fetches
one too many if it needs three of four. Global memory, bytes and what is extended with a sign stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..counting.transactions import WORD, served_loads, served_stores, totals
from ..isa.operands import plus
from ..lanes.symbolic_values import Sum, Value
from ..lanes.warps import find_occupancy
from ..machine.chunk import Chunk
from ..ptx.alignment import Residue, residues
from ..ptx.program import TYPES, Address, Instruction, Operand
from .flow import BasicBlock

_KINDS = {"ld": "load", "st": "store"}
#: Instructions that no access is moved across.
_BETWEEN = {"st", "atom", "red", "bar", "barrier", "membar", "fence", "call", "cp"}


@dataclass(frozen=True)
class Neighbours:
    """Instructions that may be merged."""

    #: ``load`` or ``store``, and the bytes of each.
    kind: str
    size: int
    #: What is known of the register.
    base: Residue
    #: By the number that each adds to the register, in the order of the code: the identity of the instruction.
    members: dict[int, int] = field(default_factory=dict)

    def pieces(self) -> list[tuple[int, int]]:
        """Where each access begins that is made of them, and its bytes: none where the alignment is not known."""
        left, found = {*self.members}, []
        for parts in (4, 2):
            width, rest = parts * self.size, self.base.rest
            if width > self.base.modulus:
                continue
            for start in sorted({(place + rest) // width * width - rest for place in left}):
                inside = {place for place in left if start <= place < start + width}
                if len(inside) >= parts - (self.kind == "load" and parts == 4):
                    found.append((start, width))
                    left -= inside
        return found + [(place, self.size) for place in sorted(left)]


def neighbours(
    code: Sequence[Instruction], blocks: Sequence[BasicBlock], addresses: Mapping[str, int]
) -> list[Neighbours]:
    """What may be merged in a kernel, and wide accesses by themselves; variables have these addresses."""
    if not any(map(_key, code)):
        return []
    known = residues(code, addresses)
    found = [group for block in blocks for group in _of_block(code[block.start : block.stop], known)]
    return [group for group in found if len(group.members) > 1 or group.size > WORD]


def _of_block(code: Sequence[Instruction], known: Callable[[Operand | None], Residue]) -> Iterator[Neighbours]:
    together: dict[tuple[str, int, Operand | None], Neighbours] = {}
    for one in code:
        key = _key(one)
        if key is None and one.opcode in _BETWEEN:
            together = {}
        elif key is not None and key[0] == "store":
            together = {each: group for each, group in together.items() if each == key}
        if key is not None:
            if key not in together:
                together[key] = Neighbours(*key[:2], known(key[2]))
                yield together[key]
            where = one.operands[key[0] == "load"]
            together[key].members.setdefault(where.offset if isinstance(where, Address) else 0, id(one))
        together = {each: group for each, group in together.items() if getattr(each[2], "name", "") not in one.writes}


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
        first = next(iter(group.members))
        self._pieces = [(start - first, width) for start, width in group.pieces()]

    def record(self, chunk: Chunk, place: Value) -> None:
        """Count an execution by the active threads of a chunk, from the first instruction's addresses."""
        size = place.block.itemsize if isinstance(place, Sum) else place.itemsize
        served = served_loads if self.kind == "load" else served_stores
        for shift, width in self._pieces:
            where = plus(TYPES[f"u{8 * size}"], place, np.full((1, 1), shift, f"i{size}")) if shift else place
            self.requests += find_occupancy(chunk.active, chunk.shape).requests
            self.wavefronts += totals(served, where, chunk.active, chunk.shape, width)[0]
