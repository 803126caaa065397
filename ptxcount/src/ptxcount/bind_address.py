"""Generic addresses and those of state spaces (PTX ISA, ``cvta``, ``isspacep``)."""

from __future__ import annotations

import numpy as np

from .binding import Step, binds, op, step_of
from .chunk import Chunk
from .operands import plus
from .program import TYPES, Instruction
from .spaces import SPACES, WINDOW_BITS, WINDOWS, window
from .values import Value
from .warps import Array

_SPACE = "|".join(SPACES)


@op(f"cvta(.to)?.({_SPACE}).u64", "u64 = u64", sums=True)
def _converted(to: str | None, space: str, chunk: Chunk, value: Value) -> list[Value]:
    """Between generic addresses and those of a state space."""
    start = window(space)
    return [plus(TYPES["u64"], value, np.full((1, 1), -start if to else start, np.int64)) if start else value]


@op(f"isspacep.({_SPACE})", "pred = s64")
def _is_within(space: str, chunk: Chunk, value: Array) -> list[Array]:
    return [value >> WINDOW_BITS == WINDOWS.index(SPACES[space])]


@binds("createpolicy")
def _policy(instruction: Instruction) -> Step:
    """A number that only the L2 cache understands."""
    target = (instruction.operands[0], TYPES["u64"])
    return step_of(instruction, [target], [], lambda chunk: [np.zeros((1, 1), np.uint64)])
