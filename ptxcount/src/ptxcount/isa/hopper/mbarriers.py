"""Barriers in shared memory, ``mbarrier``, as words of 64 bits (PTX ISA, "Asynchronous Barriers: mbarrier").

A word holds, from its lowest bit on, the arrivals that are pending, those of each phase, the bytes that are to come,
and the parity of the phase. What PTX calls opaque, the state of a phase, is the word as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...lanes.symbolic_values import Value
from ...lanes.warps import Array, spread
from ...machine.chunk import Chunk
from ...machine.global_memory import Report
from ...ptx.program import TYPES, Address, Instruction, Operand
from ..atomic_operations import Atomic, apply
from ..operands import Reader, address, expect_count, unsupported
from ..registry import Step, binds, step_of
from ..spaces import in_shared, space_of

_U32, _U64, _PRED = TYPES["u32"], TYPES["u64"], TYPES["pred"]
_COUNT, _BYTES = 20, 21
_PHASE = np.uint64(63)
_ONE = np.ones((1, 1), np.uint32)
#: What a poll counts for, so that those go on who are waited for: see `Schedule`.
_POLL = 100


def _field(word: Array, start: int, bits: int) -> Array:
    return np.asarray((word >> np.uint64(start)).astype(np.int64) & ((1 << bits) - 1))


def _changed(word: Array, arrivals: Any = 0, to_come: Any = 0, leaving: Any = 0) -> Array:
    """A barrier after arrivals, bytes to come, and threads that do not come again: perhaps in its next phase."""
    pending, expected = _field(word, 0, _COUNT) - arrivals, _field(word, _COUNT, _COUNT) - leaving
    coming = (_field(word, 2 * _COUNT, _BYTES) + to_come) & ((1 << _BYTES) - 1)
    done = (pending == 0) & (coming == 0)
    parity = (word >> _PHASE).astype(np.int64) ^ done
    fields = (np.where(done, expected, pending) & ((1 << _COUNT) - 1)) | (expected << _COUNT) | (coming << 2 * _COUNT)
    return np.asarray(fields.astype(np.uint64) | (parity.astype(np.uint64) << _PHASE))


def _signed(values: Array) -> Array:
    return values.astype(np.int64)


#: What each operation makes of a word, from its operand, which is 1 unless given.
_CHANGES: dict[str, Callable[[Array, Array], Array]] = {
    "arrive": lambda word, count: _changed(word, _signed(count)),
    "arrive_drop": lambda word, count: _changed(word, _signed(count), 0, _signed(count)),
    "expect_tx": lambda word, given: _changed(word, 0, _signed(given)),
    "complete_tx": lambda word, given: _changed(word, 0, -_signed(given)),
    "arrive.expect_tx": lambda word, given: _changed(_changed(word, 0, _signed(given)), 1),
    "arrive_drop.expect_tx": lambda word, given: _changed(_changed(word, 0, _signed(given)), 1, 0, 1),
}
#: Modifiers that say who sees what when, and where.
_ORDER = {"release", "acquire", "relaxed", "cta", "cluster", "noComplete", "b64", "shared", "shared::cta",
          "shared::cluster"}  # fmt: skip


def change(chunk: Chunk, name: str, place: Value, given: Array) -> Array:
    """Do an operation on the barriers at an address of the active threads; the words before, of each thread."""
    on = np.nonzero(spread(chunk.active, chunk.shape))
    values = [spread(given, chunk.shape)[on]]
    before = np.zeros(chunk.shape, np.uint64)
    chunk.wrote, chunk.spins = True, 0
    for units, index, _ in chunk.shared.atomic(place, 8, chunk.active, chunk.reporter(), chunk.shape):
        before[on] = apply(Atomic(_CHANGES[name], frozenset()), units, index, values, returns=True)
    return before


def complete(chunk: Chunk, row: int, offset: int, count: int, report: Report) -> None:
    """So many bytes have come, for the barrier of a block."""
    word = chunk.shared.reach(row, offset, 8, report, written=True).view(np.uint64)
    word[:] = _changed(word, 0, -count)
    chunk.wrote, chunk.spins = True, 0


def _place(instruction: Instruction, operand: Operand) -> Reader:
    return in_shared(instruction, address(instruction, operand, space_of(instruction)))


@binds("mbarrier")
def _barrier(instruction: Instruction) -> Step:
    """``mbarrier.operation{...}.b64 {state,} [a]{, operand}``."""
    names = [name for name in instruction.modifiers if name not in _ORDER]
    if ".".join(names) in _CHANGES:
        return _change(instruction, ".".join(names))
    if names in (["init"], ["inval"]):
        return _init(instruction)
    if names[:1] in (["test_wait"], ["try_wait"]) and {*names[1:]} <= {"parity"}:
        return _wait(instruction)
    raise unsupported(instruction)


def _change(instruction: Instruction, name: str) -> Step:
    returns = bool(instruction.operands) and not isinstance(instruction.operands[0], Address)
    where, *given = instruction.operands[returns:]
    expect_count(instruction, returns + 1, returns + 2)
    place = _place(instruction, where)

    def changed(chunk: Chunk, *values: Array) -> list[Array]:
        return [change(chunk, name, place(chunk), *(values or (_ONE,)))]

    writes = [(each, _U64) for each in instruction.operands[:returns]]
    return step_of(instruction, writes, [(each, _U32) for each in given], changed)


def _init(instruction: Instruction) -> Step:
    """``mbarrier.init.b64 [a], count``, and ``mbarrier.inval.b64 [a]``."""
    expect_count(instruction, 1 + (instruction.modifiers[0] == "init"))
    place = _place(instruction, instruction.operands[0])

    def init(chunk: Chunk, *counts: Array) -> list[Array]:
        words = [count.astype(np.uint64) * np.uint64(1 + (1 << _COUNT)) for count in counts or (0 * _ONE,)]
        chunk.shared.store(place(chunk), 8, words, chunk.active, chunk.reporter())
        return []

    return step_of(instruction, [], [(each, _U32) for each in instruction.operands[1:]], init)


def _wait(instruction: Instruction) -> Step:
    """``mbarrier.{test,try}_wait{.parity}.b64 p, [a], {state,parity}{, time}``."""
    expect_count(instruction, 3, 4)
    first, where, given = instruction.operands[:3]
    parity, place = "parity" in instruction.modifiers, _place(instruction, where)

    def waited(chunk: Chunk, old: Array) -> list[Array]:
        now, on = np.zeros(chunk.shape, np.uint64), np.nonzero(spread(chunk.active, chunk.shape))
        for units, index, _ in chunk.shared.atomic(place(chunk), 8, chunk.active, chunk.reporter(), chunk.shape):
            now[on] = units[index]
        done = (now >> _PHASE) != (old & 1 if parity else old >> _PHASE)
        chunk.spins += _POLL * bool((chunk.active & ~done).any())
        if (chunk.active & done).any():  # who has waited sees what others did before they arrived
            chunk.shared.barrier(chunk.active & done)
            chunk.order(chunk.active & done)
            chunk.shared.order_blocks(chunk.active & done)
        return [done]

    return step_of(instruction, [(first, _PRED)], [(given, _U32 if parity else _U64)], waited)


@binds("cp")
def _copied(instruction: Instruction) -> Step | None:
    """``cp.async.mbarrier.arrive{.noinc}.b64 [a]``: an arrival, which is expected beforehand unless ``.noinc``."""
    if "mbarrier" not in instruction.modifiers:
        return None
    expect_count(instruction, 1)
    place = _place(instruction, instruction.operands[0])
    name = "arrive" if "noinc" in instruction.modifiers else "expect_tx"
    given = np.full((1, 1), int(name == "arrive"), np.uint32)

    def step(chunk: Chunk) -> None:
        change(chunk, name, place(chunk), given)

    return step
