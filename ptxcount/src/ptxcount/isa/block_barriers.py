"""Barriers of thread blocks and clusters, and traps (PTX ISA, ``bar``, ``barrier``, ``trap``)."""

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from ..lanes.symbolic_values import dense
from ..lanes.warps import LANES, Array, spread
from ..machine.chunk import Chunk
from ..machine.warp_clocks import is_warp_barrier
from ..ptx.flow import is_elect_wait
from ..ptx.program import TYPES, Instruction
from ..util.errors import LaunchError, TrapError
from .opcode_registry import Step, binds, make_step, op
from .operands import Reader, choose_modifier, expect_count, expect_modifiers, make_reader, split_name, unsupported

#: Maximum number of a block barrier.
_MAX_NUMBER = 15


class Barrier(NamedTuple):
    """Operands and form of a barrier."""

    #: Reader of the barrier's number, or of the mask of a warp barrier; None for a cluster barrier.
    number: Reader | None
    #: Reader of the thread count; None for all threads.
    threads: Reader | None = None
    #: False for ``.arrive``.
    waits: bool = True
    #: True if the lanes of a warp must wait at the same instruction.
    aligned: bool = False
    of_warp: bool = False
    #: False for ``elect.sync``.
    orders_memory: bool = True


def parse_barrier(instruction: Instruction) -> Barrier:
    """Parse ``barrier.cluster.arrive`` or ``.wait``, ``bar.warp.sync``, or a block barrier.

    Also parse ``elect.wait``, which `lowering` adds before ``elect.sync``. Raises `UnsupportedInstructionError` for
    other forms.
    """
    if instruction.modifiers[:1] == ("cluster",):
        operation = choose_modifier(instruction, ("arrive", "wait"))
        orders = ("acquire",) if operation == "wait" else ("release", "relaxed")
        expect_modifiers(instruction, instruction.modifiers[1:], {operation, "aligned", *orders})
        expect_count(instruction, 0)
        return Barrier(None, waits=operation == "wait")
    is_elect = is_elect_wait(instruction)
    if is_warp_barrier(instruction):
        expect_modifiers(instruction, instruction.modifiers, {"warp", "sync"}, {"sync"})
    elif not is_elect:
        return _parse_block_barrier(instruction)
    expect_count(instruction, 1)
    mask = make_reader(instruction, instruction.operands[0], TYPES["u32"])
    return Barrier(mask, of_warp=True, orders_memory=not is_elect)


def _parse_block_barrier(instruction: Instruction) -> Barrier:
    """Parse ``bar{rier}{.cta}.sync{.aligned} a{, b}`` or ``.arrive``."""
    modifiers = {*instruction.modifiers}
    if "red" in modifiers and not _BLOCK_REDUCTIONS.keys().isdisjoint(modifiers):
        expect_count(instruction, 3, 4)  # `lowering` splits reductions with these numbers of operands
    waits = "sync" in modifiers
    if not waits and "arrive" not in modifiers:
        raise unsupported(instruction, "it needs one of .sync, .arrive, .red.popc, .red.and, .red.or")
    expect_modifiers(instruction, instruction.modifiers, {"sync" if waits else "arrive", "aligned", "cta"})
    expect_count(instruction, *((1, 2) if waits else (2,)))
    number, *threads = (make_reader(instruction, operand, TYPES["u32"]) for operand in instruction.operands)
    aligned = instruction.opcode == "bar" or "aligned" in modifiers
    return Barrier(number, threads[0] if threads else None, waits, aligned)


@binds("bar", "barrier")
def _bind_barrier(instruction: Instruction) -> Step | None:
    """Check the form and the operands of a block or cluster barrier; the scheduler makes threads wait."""
    if is_warp_barrier(instruction):
        return None  # its step checks the mask
    barrier = parse_barrier(instruction)

    def check(chunk: Chunk) -> None:
        for number in _find_wrong(chunk, barrier.number, lambda numbers: numbers > _MAX_NUMBER):
            raise unsupported(instruction, f"the barrier is {number}; allowed are 0 to {_MAX_NUMBER}")
        for count in _find_wrong(chunk, barrier.threads, lambda counts: (counts == 0) | (counts % LANES != 0)):
            raise unsupported(instruction, f"it expects {count} threads; the number must be a multiple of {LANES}")

    return check


def _find_wrong(chunk: Chunk, reader: Reader | None, is_wrong: Callable[[Array], Array]) -> list[int]:
    """Return the values of an operand, if there is one, that are wrong for active threads."""
    values = np.zeros((1, 1), np.uint32) if reader is None else dense(reader(chunk))
    wrong = is_wrong(values)
    if reader is None or not wrong.any():
        return []
    return [*spread(values, chunk.shape)[spread(wrong & chunk.active, chunk.shape)].tolist()]


#: Reductions of ``bar.red``: functions of the predicates (false for other threads) and the mask of arrived threads.
_BLOCK_REDUCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "popc": lambda votes, arrived: np.count_nonzero(votes, axis=1, keepdims=True).astype(np.uint32),
    "and": lambda votes, arrived: np.asarray((votes | ~arrived).all(axis=1, keepdims=True)),
    "or": lambda votes, arrived: np.asarray(votes.any(axis=1, keepdims=True)),
}


@binds("bar.red", "bar.cta.red", "barrier.red", "barrier.cta.red")
def _bind_reduction(instruction: Instruction) -> Step:
    """Bind ``bar{rier}{.cta}.red.op{.aligned}.type d, p``, one result per block, without the barrier.

    `lowering` splits ``bar.red d, a{, b}, p`` into the ``bar.sync a{, b}`` and this instruction.
    """
    names, types = split_name(instruction, 1)
    operation = choose_modifier(instruction, _BLOCK_REDUCTIONS)
    expect_modifiers(instruction, names, {operation, "aligned"})
    result_type = TYPES["u32" if operation == "popc" else "pred"]
    if types != [result_type]:
        raise unsupported(
            instruction, f"its type is .{types[0].name}; with .{operation}, it must be .{result_type.name}"
        )
    result, predicate = instruction.operands

    def reduce_predicates(chunk: Chunk, predicates: Array) -> list[Array]:
        arrived = spread(chunk.active, chunk.shape)
        return [_BLOCK_REDUCTIONS[operation](arrived & predicates, arrived)]

    return make_step(instruction, [(result, result_type)], [(predicate, TYPES["pred"])], reduce_predicates)


@op("(trap|brkpt)", "=")
def _raise_trap(opcode: str, chunk: Chunk) -> list[Array]:
    """Raise `TrapError`; but `LaunchError` for a ``trap`` if the grid is too large for the kernel's grid barrier."""
    max_resident_blocks = chunk.context.max_resident_blocks
    if opcode == "trap" and max_resident_blocks:
        raise LaunchError(
            f"the grid has {prod(chunk.context.grid)} blocks; a grid barrier needs a cooperative launch, with at "
            f"most {max_resident_blocks} blocks of {chunk.context.threads} threads: an H200 holds no more at a time; "
            "if the kernel did not reach its grid barrier, its own __trap() ended it"
        )
    raise chunk.make_fault(TrapError, f"the kernel executed {opcode} (__{opcode}())")
