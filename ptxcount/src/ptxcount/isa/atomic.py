"""``atom`` and ``red``: atomic operations on global and shared memory (PTX ISA, "Parallel Synchronization")."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from ..counting.atomic_costs import find_atomic_cost
from ..counting.transactions import WORD
from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array, spread
from ..machine.chunk import Chunk
from ..ptx.program import SINK, Immediate, Instruction, Operand, Register, format_operand, iter_leaves
from .atomic_operations import apply_operation, choose_sum, find_operation
from .opcode_registry import Step, binds, make_step
from .operands import expect_count, make_address_reader, split_vector, unsupported
from .spaces import decode_access, dispatch_by_space
from .swap_loop import iter_swap_rounds

_SPACES = ("global", "shared")


@binds("atom", "red")
def _bind_atomic(instruction: Instruction) -> Step | None:
    """Bind ``atom{.hints}{.space}.op{.noftz}{.vec}.type d, [a], b{, c}``, and ``red`` without ``d``."""
    if "async" in instruction.modifiers:
        return None
    space, count, kind, names = decode_access(instruction, allows_others=True)
    operation = find_operation(instruction, names, kind)
    if count > 1 and operation.operands > 1:
        raise unsupported(instruction, f".{names[0]} does not exist for vectors")
    if space not in (None, *_SPACES):
        raise unsupported(instruction, f"{space} memory has no atomics; global and shared memory have")
    returns = instruction.opcode == "atom"
    target_count = 1 if returns else 0
    expect_count(instruction, target_count + 1 + operation.operands)
    address, *sources = instruction.operands[target_count:]
    targets = split_vector(instruction, instruction.operands[0], count) if returns else ()
    used = any(target is not SINK for target in targets)
    cost = find_atomic_cost(
        names[0],
        kind,
        returns=used,
        adds_one=sources[0] == Immediate(1),
        uniform_value=_is_uniform(instruction, *sources),
        uniform_address=_is_uniform(instruction, address),
    )
    read = make_address_reader(instruction, address, space)
    is_lock = names[0] in ("cas", "exch")
    is_float_sum = names == ["add"] and kind.name == "f32"

    def run_atomic(chunk: Chunk, *operands: Array) -> list[Array]:
        return dispatch_by_space(space, read, partial(update_cells, operands))(chunk)

    def update_cells(operands: Sequence[Array], chunk: Chunk, where: str, place: Value) -> list[Array]:
        """Update one state space; return the old values of the active threads, and zeros for all others."""
        if where not in _SPACES:
            raise unsupported(instruction, f"{format_operand(address)} is in {where} memory, which has no atomics")
        positions, width = np.nonzero(spread(chunk.active, chunk.shape)), kind.size
        values = [spread(operand, chunk.shape)[positions] for operand in operands]
        results = [np.zeros(chunk.shape, kind.dtype) for _ in range(count)]
        may_poll = np.full(chunk.shape, is_lock)
        chunk.order_blocks(chunk.active)
        memory = chunk.find_memory(where)
        for units, index, selected in memory.find_atomic_cells(
            place, width * count, chunk.active, chunk.make_reporter(), chunk.shape
        ):
            cells = units.view(kind.dtype)
            threads = tuple(axis[selected] for axis in positions)
            for k, result in enumerate(results):
                arguments = [value[selected] for value in (values[k : k + 1] if count > 1 else values)]
                places, update = index * count + k, operation
                if is_float_sum and where == "global":
                    update = choose_sum(operation, cells[places], *arguments)
                old = apply_operation(update, cells, places, arguments, returns=used)
                result[threads] = old
                may_poll[threads] |= cells[places] == old
                if used and (cells[places] == old).all():
                    chunk.spins += 1
                elif is_lock:
                    chunk.has_written, chunk.spins = True, 0
        chunk.shared.order_blocks(chunk.active)
        if width * count == 2:
            words = dense(place).astype(np.int64) & -WORD
            chunk.record(where, "load", WORD, words)
            for n, active in enumerate(iter_swap_rounds(operation, chunk, place, results[0][positions], values)):
                chunk.record(where, "atomic", width, words, active=active, cost=cost, is_replay=n > 0)
        else:
            chunk.record_polling(where, "atomic", width * count, place, cost=cost, may_poll=may_poll)
        return results

    reads = [(operand, kind) for source in sources for operand in split_vector(instruction, source, count)]
    return make_step(instruction, [(target, kind) for target in targets], reads, run_atomic)


def _is_uniform(instruction: Instruction, *operands: Operand) -> bool:
    names = {leaf.name for operand in operands for leaf in iter_leaves(operand) if isinstance(leaf, Register)}
    return names <= instruction.uniform
