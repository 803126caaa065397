"""``atom`` and ``red``: atomic operations on global and shared memory (PTX ISA, "Parallel Synchronization")."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .atomics import apply, find, turns
from .bind_memory import decode, memory_of, resolver
from .chunk import Chunk
from .operands import Binder, Step, address, destination, expect_count, step_of, unsupported
from .program import Immediate, Instruction
from .warps import spread

Array = npt.NDArray[Any]


def _bind_atomic(instruction: Instruction) -> Step:
    """``atom{.hints}{.space}.op{.noftz}.type d, [a], b{, c}`` and ``red{.hints}{.space}.op{.noftz}.type [a], b``."""
    space, count, kind, rest = decode(instruction)
    operation = find(rest, kind)
    if operation is None or count > 1 or space not in (None, "global", "shared"):
        raise unsupported(instruction)
    returns = instruction.opcode == "atom"
    expect_count(instruction, returns + 1 + operation.operands)
    where_operand, *sources = instruction.operands[returns:]
    target = destination(instruction, instruction.operands[0], kind) if returns else None
    resolve = resolver(instruction, space, address(instruction, where_operand, space))

    ones = isinstance(sources[0], Immediate) and sources[0].value == 1
    cost = turns(rest[0], kind, returns=target is not None, ones=ones)

    def done(chunk: Chunk, *given: Array) -> list[Array]:
        where, place = resolve(chunk)
        report = chunk.reporter(instruction.source)
        on = np.nonzero(spread(chunk.active, chunk.shape))
        values = [spread(each, chunk.shape)[on] for each in given]
        if where == "local":
            raise unsupported(instruction, "in local memory")
        old = np.zeros(len(on[0]), kind.dtype)
        for units, index, chosen in memory_of(chunk, where).atomic(place, kind.size, chunk.active, report, chunk.shape):
            mine = [value[chosen] for value in values]
            old[chosen] = apply(operation, units.view(kind.dtype), index, mine, returns=target is not None)
            if target is not None and (units.view(kind.dtype)[index] == old[chosen]).all():
                chunk.spins += 1
            elif rest[0] in ("cas", "exch"):
                chunk.spins = 0
        chunk.context.access(instruction, where, "atomic", kind.size).record(place, chunk.active, chunk.shape, cost)
        result = np.zeros(chunk.shape, kind.dtype)
        result[on] = old
        return [result][:returns]

    writes = [(instruction.operands[0], kind)] if returns else []
    return step_of(instruction, writes, [(source, kind) for source in sources], done)


ATOMIC_BINDERS: dict[str, Binder] = {"atom": _bind_atomic, "red": _bind_atomic}
