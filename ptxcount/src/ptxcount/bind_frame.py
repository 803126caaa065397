"""The stack of functions that call themselves: what their registers hold, by how deep a thread is in (`lowering`).

What is put aside are registers, too, each named by its depth, so that threads may be in at different depths.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .chunk import Chunk
from .errors import StepLimitExceededError
from .lowering import DEEPEST
from .operands import Binder, Keep, Step, as_array, items, step_of, unsupported
from .program import TYPES, Immediate, Instruction, Operand, Register, Symbol
from .values import dense
from .warps import spread

Array = npt.NDArray[Any]
_U32, _U64 = TYPES["u32"], TYPES["u64"]
#: How often a function may call itself.
_MOST = 1000


def _depths(chunk: Chunk, depth: Register) -> Iterator[int]:
    """How deep the active threads are in; while it gives a number, those threads alone are active."""
    active, merging = chunk.active, chunk.merging
    now = spread(as_array(chunk.read(depth.name, _U32), _U32), chunk.shape).copy()
    on = spread(active, chunk.shape)
    for level in np.unique(now[on]).tolist():
        chunk.active, chunk.merging = on & (now == level), True
        yield level
    chunk.active, chunk.merging = active, merging


def _given(chunk: Chunk, symbols: tuple[Operand, ...]) -> Iterator[tuple[str, Array]]:
    """The name of each variable that calls are given, and its bytes."""
    context = chunk.context
    for each in symbols:
        if isinstance(each, Symbol):
            yield each.name, chunk.local.bytes_at(context.symbols[each.name], context.local_extents[each.name])


def _bind_frame(instruction: Instruction, keep: Keep) -> Step:
    if instruction.modifiers[0] not in _KINDS:
        raise unsupported(instruction)
    return _KINDS[instruction.modifiers[0]](instruction, keep)


def _bind_push(instruction: Instruction, keep: Keep) -> Step:
    both, held, memory, number = instruction.operands
    turn, depth = items(both)
    assert isinstance(turn, Register) and isinstance(depth, Register) and isinstance(number, Immediate)  # noqa: PT018
    returns = np.full((1, 1), number.value, np.uint32)

    def push(chunk: Chunk) -> None:
        for level in _depths(chunk, depth):
            if level >= _MOST:
                text = f"a function calls itself more than {_MOST} times"
                raise chunk.fault(StepLimitExceededError, instruction.source, chunk.first_active(), text)
            for each in items(held):
                if isinstance(each, Register):
                    chunk.write(f"{each.name}:{level}", dense(chunk.read(each.name, each.type)), True)
            for name, place in _given(chunk, items(memory)):
                chunk.write(f"{name}:{level}", np.ascontiguousarray(place).view(f"V{place.shape[2]}")[..., 0], True)
            chunk.write(depth.name, np.full((1, 1), level + 1, np.uint32), True)
        chunk.write(turn.name, returns, True)

    return push


def _bind_pop(instruction: Instruction, keep: Keep) -> Step:
    held, memory, counted = instruction.operands
    (depth,) = items(counted)
    assert isinstance(depth, Register)

    def pop(chunk: Chunk) -> None:
        for level in _depths(chunk, depth):
            for each in items(held):
                if isinstance(each, Register):
                    chunk.write(each.name, chunk.read(f"{each.name}:{level - 1}", each.type), True)
            for name, place in _given(chunk, items(memory)):
                kept = dense(chunk.registers[f"{name}:{level - 1}"])
                place[chunk.active] = kept[..., None].view(np.uint8)[chunk.active]
            chunk.write(depth.name, np.full((1, 1), level - 1, np.uint32), True)

    return pop


def _bind_move(instruction: Instruction, keep: Keep) -> Step:
    to, from_, size = instruction.operands
    assert isinstance(to, Symbol) and isinstance(from_, Symbol) and isinstance(size, Immediate)  # noqa: PT018

    def move(chunk: Chunk) -> None:
        on, places = spread(chunk.active, chunk.shape), chunk.context.symbols
        source, target = (chunk.local.bytes_at(places[each.name], int(size.value)) for each in (from_, to))
        target[on] = source[on]

    return move


def _bind_array(instruction: Instruction, keep: Keep) -> Step:
    """``mov d, array`` where each depth has an array of its own."""
    target, array, depth, stride = instruction.operands
    assert isinstance(target, Register) and isinstance(array, Symbol) and isinstance(stride, Immediate)  # noqa: PT018

    def where(chunk: Chunk, level: Array) -> list[Array]:
        if level.max() >= DEEPEST:
            text = f"a function with arrays of its own calls itself {DEEPEST} times"
            raise chunk.fault(StepLimitExceededError, instruction.source, chunk.first_active(), text)
        place = chunk.context.symbols[array.name] + level.astype(np.int64) * int(stride.value)
        return [place.astype(f"u{target.type.size}")]

    return step_of(instruction, keep, [(target, target.type)], [(depth, _U32)], where)


_KINDS: dict[str, Binder] = {"push": _bind_push, "pop": _bind_pop, "move": _bind_move, "array": _bind_array}
FRAME_BINDERS: dict[str, Binder] = {"frame": _bind_frame}
