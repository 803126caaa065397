"""Asynchronous stores to shared memory: ``st.async``, ``red.async``, ``st.bulk`` (PTX ISA).

They complete immediately here.
"""

import numpy as np

from ...counting.atomic_costs import find_atomic_cost
from ...lanes.warps import Array, spread
from ...machine.chunk import Chunk
from ...ptx.program import TYPES, Immediate, Instruction, format_operand
from ...util.errors import MisalignedError
from ...util.grammar import count_noun
from ..atomic_operations import apply_operation, find_operation
from ..opcode_registry import Step, binds, make_step
from ..operands import expect_count, expect_modifiers, make_address_reader, make_reader, split_vector, unsupported
from ..single_threads import iter_threads, make_row_reporter
from ..spaces import decode_access, find_space, make_shared_reader
from . import require_clusters
from .mbarriers import update_barriers

_COMPLETION = "mbarrier::complete_tx::bytes"


def _expect_shared(instruction: Instruction) -> None:
    if _COMPLETION not in instruction.modifiers:
        problem = f"without .{_COMPLETION}, it writes global memory, and its counters are unknown"
        raise unsupported(instruction, f"{problem}; use the form with an mbarrier, or st or red")
    if find_space(instruction) != "shared":
        raise unsupported(instruction, f"with .{_COMPLETION}, it needs .shared::cluster")
    expect_count(instruction, 3)


@binds("st", having={"async"})
def _bind_async_store(instruction: Instruction) -> Step:
    """Bind ``st.async{...}.shared::cluster.mbarrier::complete_tx::bytes{.vec}.type [a], b, [barrier]``."""
    _expect_shared(instruction)
    _, count, kind, _ = decode_access(instruction, "async", _COMPLETION)
    target, data, barrier = instruction.operands
    read, read_barrier = (make_address_reader(instruction, operand, "shared") for operand in (target, barrier))
    width = kind.size * count

    def store(chunk: Chunk, *values: Array) -> list[Array]:
        require_clusters(chunk, "st.async")
        place = read(chunk)
        parts = [value.view(f"u{kind.size}") for value in values]
        chunk.shared.store(place, kind.size, parts, chunk.active, chunk.make_reporter())
        chunk.record("shared", "store", width, place, remote_kind="atomic")  # counted like atomics on an H200
        update_barriers(chunk, "complete_tx", read_barrier(chunk), np.full((1, 1), width, np.uint32))
        return []

    sources = [(element, kind) for element in split_vector(instruction, data, count)]
    return make_step(instruction, [], sources, store, wider=True)


@binds("red", having={"async"})
def _bind_async_reduction(instruction: Instruction) -> Step:
    """Bind ``red.async{...}.shared::cluster.mbarrier::complete_tx::bytes.op.type [a], b, [barrier]``."""
    _expect_shared(instruction)
    _, count, kind, names = decode_access(instruction, "async", _COMPLETION, allows_others=True)
    operation = find_operation(instruction, names, kind)
    if count > 1:
        raise unsupported(instruction, "vectors do not exist for red.async; use one instruction for each element")
    target, data, barrier = instruction.operands
    read, read_barrier = (make_address_reader(instruction, operand, "shared") for operand in (target, barrier))
    adds_one = isinstance(data, Immediate) and data.value == 1
    # On an H200, the pipe has the wavefronts of red.shared, but no counter of shared atomics includes them.
    cost = find_atomic_cost(names[0], kind, returns=False, adds_one=adds_one)

    def reduce(chunk: Chunk, value: Array) -> list[Array]:
        require_clusters(chunk, "red.async")
        place, report = read(chunk), chunk.make_reporter()
        values = spread(value, chunk.shape)[spread(chunk.active, chunk.shape)]
        for units, index, selected in chunk.shared.find_atomic_cells(
            place, kind.size, chunk.active, report, chunk.shape
        ):
            apply_operation(operation, units.view(kind.dtype), index, [values[selected]], returns=False)
        chunk.record("shared", "atomic", kind.size, place, cost=cost)
        update_barriers(chunk, "complete_tx", read_barrier(chunk), np.full((1, 1), kind.size, np.uint32))
        return []

    return make_step(instruction, [], [(data, kind)], reduce)


@binds("st", having={"bulk"})
def _bind_fill(instruction: Instruction) -> Step:
    """Bind ``st.bulk{.weak}{.shared::cta} [a], size, 0``: zeros, which counters of shared stores do not include."""
    expect_count(instruction, 3)
    target, size, value = instruction.operands
    expect_modifiers(instruction, instruction.modifiers, {"bulk", "weak", "shared::cta"})
    if value != Immediate(0):
        raise unsupported(instruction, f"the value is {format_operand(value)}; it must be 0")
    place = make_shared_reader(instruction, target)
    readers = [place, make_reader(instruction, size, TYPES["u64"])]

    def fill(chunk: Chunk) -> None:
        report = make_row_reporter(chunk)
        for (start, count), rows in iter_threads(chunk, readers):
            for row in rows:
                owner, offset = chunk.shared.find_owner(row, start, report)
                if start % 8 or count % 8:
                    text = f"{count_noun(count, 'byte')} at shared address {offset}; both must be multiples of 8"
                    report(MisalignedError, (row, 0), text, offset)
                chunk.shared.view_bytes(owner, offset, count, report, is_written=True)[:] = 0
        chunk.has_written, chunk.spins = True, 0

    return fill
