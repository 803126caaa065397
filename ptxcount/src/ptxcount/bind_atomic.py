"""``atom`` and ``red``: atomic operations on global and shared memory (PTX ISA, "Parallel Synchronization")."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .atomics import apply, find, turns
from .bind_memory import decode, in_each_space, memory_of
from .chunk import Chunk
from .operands import Binder, Step, address, elements, expect_count, step_of, unsupported
from .program import SINK, Immediate, Instruction
from .values import Value
from .warps import spread

Array = npt.NDArray[Any]


def _bind_atomic(instruction: Instruction) -> Step:
    """``atom{.hints}{.space}.op{.noftz}{.vec}.type d, [a], b{, c}``, and ``red`` the same without ``d``."""
    space, count, kind, rest = decode(instruction)
    operation = find(rest, kind)
    if operation is None or (count > 1 and operation.operands > 1) or space not in (None, "global", "shared"):
        raise unsupported(instruction)
    returns = instruction.opcode == "atom"
    expect_count(instruction, returns + 1 + operation.operands)
    where_operand, *sources = instruction.operands[returns:]
    targets = elements(instruction.operands[0], count, instruction) if returns else ()
    used = any(each is not SINK for each in targets)
    ones = isinstance(sources[0], Immediate) and sources[0].value == 1
    cost = turns(rest[0], kind, returns=used, ones=ones)
    read = address(instruction, where_operand, space)

    def done(chunk: Chunk, *given: Array) -> list[Array]:
        on = np.nonzero(spread(chunk.active, chunk.shape))

        def each_space(chunk: Chunk, where: str, place: Value) -> list[Array]:
            mine = np.nonzero(spread(chunk.active, chunk.shape))
            return update(chunk, where, place, [spread(each, chunk.shape)[mine] for each in given])

        found = in_each_space(space, read, each_space)(chunk)
        results = [np.zeros(chunk.shape, kind.dtype) for _ in targets]
        for result, old in zip(results, found, strict=False):
            result[on] = old[on]
        return results

    def update(chunk: Chunk, where: str, place: Value, values: list[Array]) -> list[Array]:
        if where not in ("global", "shared"):
            raise unsupported(instruction, f"in {where} memory")
        on, report, width = np.nonzero(spread(chunk.active, chunk.shape)), chunk.reporter(instruction.source), kind.size
        results = [np.zeros(chunk.shape, kind.dtype) for _ in range(count)]
        chunk.order(chunk.active)
        reached = memory_of(chunk, where).atomic(place, width * count, chunk.active, report, chunk.shape)
        for units, index, chosen in reached:
            cells = units.view(kind.dtype)
            for k, result in enumerate(results):
                mine = [value[chosen] for value in (values[k : k + 1] if count > 1 else values)]
                old = apply(operation, cells, index * count + k, mine, returns=used)
                result[tuple(axis[chosen] for axis in on)] = old
                if used and (cells[index * count + k] == old).all():
                    chunk.spins += 1
                elif rest[0] in ("cas", "exch"):
                    chunk.wrote, chunk.spins = True, 0
        access = chunk.context.access(instruction, where, "atomic", width * count)
        access.record(place, chunk.active, chunk.shape, cost)
        return results

    reads = [(each, kind) for source in sources for each in elements(source, count, instruction)]
    return step_of(instruction, [(each, kind) for each in targets], reads, done)


ATOMIC_BINDERS: dict[str, Binder] = {"atom": _bind_atomic, "red": _bind_atomic}
