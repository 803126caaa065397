"""Addresses of one state space as those of another (PTX ISA, ``cvta``, ``isspacep``, ``mapa``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .bind_memory import SPACES, WINDOW_BITS, WINDOWS, window
from .chunk import Chunk
from .operands import Binder, Step, expect_count, plus, split_name, step_of, unsupported
from .program import TYPES, Instruction
from .shared import RANK_BITS
from .values import Value

Array = npt.NDArray[Any]


def _bind_convert_address(instruction: Instruction) -> Step:
    """``cvta{.to}.space.u64 d, a``: between generic addresses and those of a state space."""
    names, types = split_name(instruction)
    expect_count(instruction, 2)
    to = "to" in names
    spaces = [name for name in names if name != "to"]
    if len(spaces) != 1 or spaces[0] not in SPACES or [t.name for t in types] != ["u64"]:
        raise unsupported(instruction)
    u64 = TYPES["u64"]
    start = window(spaces[0])
    shift = np.full((1, 1), -start if to else start, np.int64)
    target, source = instruction.operands

    def converted(chunk: Chunk, value: Value) -> list[Value]:
        return [plus(u64, value, shift) if start else value]

    return step_of(instruction, [(target, u64)], [(source, u64)], converted, sums=True)


def _bind_is_space(instruction: Instruction) -> Step:
    """``isspacep.space p, a``: whether a generic address lies in a state space."""
    expect_count(instruction, 2)
    space = SPACES.get(instruction.modifiers[0] if len(instruction.modifiers) == 1 else "")
    if space is None:
        raise unsupported(instruction)
    target, address_of = instruction.operands
    window = WINDOWS.index(space)

    def inside(chunk: Chunk, value: Array) -> list[Array]:
        return [value >> WINDOW_BITS == window]

    return step_of(instruction, [(target, TYPES["pred"])], [(address_of, TYPES["s64"])], inside)


def _bind_rank(instruction: Instruction) -> Step:
    """``mapa{.shared::cluster}.type d, a, rank`` and ``getctarank{.shared::cluster}.type d, a``."""
    names, types = split_name(instruction)
    maps = instruction.opcode == "mapa"
    if names not in ([], ["shared::cluster"]) or len(types) != 1 or types[0].name not in ("u32", "u64"):
        raise unsupported(instruction)
    expect_count(instruction, 2 + maps)
    (kind,), (target, given, *rank) = types, instruction.operands

    def mapped(chunk: Chunk, place: Array, wanted: Array) -> list[Array]:
        within = place & kind.dtype.type(~(0xFF << RANK_BITS) & (2**kind.bits - 1))
        return [within | ((wanted.astype(kind.dtype) + kind.dtype.type(1)) << kind.dtype.type(RANK_BITS))]

    def rank_of(chunk: Chunk, place: Array) -> list[Array]:
        found = (place >> kind.dtype.type(RANK_BITS)).astype(np.uint32) & 0xFF
        own = chunk.special("%cluster_ctarank")
        return [np.where(found == 0, 0 if own is None else own, found - 1)]

    reads = [(given, kind), *((each, TYPES["u32"]) for each in rank)]
    return step_of(instruction, [(target, kind if maps else TYPES["u32"])], reads, mapped if maps else rank_of)


def _bind_policy(instruction: Instruction) -> Step:
    """``createpolicy``: a number that only the L2 cache understands."""
    target = instruction.operands[0]
    return step_of(instruction, [(target, TYPES["u64"])], [], lambda chunk: [np.zeros((1, 1), np.uint64)])


ADDRESS_BINDERS: dict[str, Binder] = {
    "cvta": _bind_convert_address,
    "isspacep": _bind_is_space,
    "mapa": _bind_rank,
    "getctarank": _bind_rank,
    "createpolicy": _bind_policy,
}
