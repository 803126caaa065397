"""``atom`` and ``red``: atomic operations on global and shared memory (PTX ISA, "Parallel Synchronization")."""

import numpy as np

from ..counting.atomic_costs import find_atomic_cost
from ..counting.transactions import WORD
from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import Array, spread
from ..machine.chunk import Chunk
from ..ptx.program import SINK, Immediate, Instruction, Operand, Register, iter_leaves
from .atomic_operations import apply_operation, find_operation, ftz_sums
from .opcode_registry import Step, binds, step_of
from .operands import address, elements, expect_count, unsupported
from .spaces import decode_access, make_access
from .swap_loop import iter_swap_rounds


@binds("atom", "red")
def _atomic(instruction: Instruction) -> Step | None:
    """Bind ``atom{.hints}{.space}.op{.noftz}{.vec}.type d, [a], b{, c}``, and ``red`` without ``d``."""
    if "async" in instruction.modifiers:
        return None
    space, count, kind, names = decode_access(instruction, allows_others=True)
    operation = find_operation(names, kind)
    if operation is None or (count > 1 and operation.operands > 1) or space not in (None, "global", "shared"):
        raise unsupported(instruction)
    returns = instruction.opcode == "atom"
    expect_count(instruction, returns + 1 + operation.operands)
    where_operand, *sources = instruction.operands[returns:]
    targets = elements(instruction.operands[0], count, instruction) if returns else ()
    used = any(target is not SINK for target in targets)
    cost = find_atomic_cost(
        names[0],
        kind,
        returns=used,
        adds_one=sources[0] == Immediate(1),
        one_value=_is_uniform(instruction, *sources),
        one_address=_is_uniform(instruction, where_operand),
    )
    read = address(instruction, where_operand, space)
    is_lock = names[0] in ("cas", "exch")
    ftz = names == ["add"] and kind.name == "f32"

    def run_atomic(chunk: Chunk, *given: Array) -> list[Array]:
        positions = np.nonzero(spread(chunk.active, chunk.shape))

        def update_space(chunk: Chunk, where: str, place: Value) -> list[Array]:
            active_positions = np.nonzero(spread(chunk.active, chunk.shape))
            return update_cells(chunk, where, place, [spread(each, chunk.shape)[active_positions] for each in given])

        old_values = make_access(space, read, update_space)(chunk)
        results = [np.zeros(chunk.shape, kind.dtype) for _ in targets]
        for result, old in zip(results, old_values, strict=False):
            result[positions] = old[positions]
        return results

    def update_cells(chunk: Chunk, where: str, place: Value, values: list[Array]) -> list[Array]:
        if where not in ("global", "shared"):
            raise unsupported(instruction, f"it does not exist for {where} memory")
        positions, width = np.nonzero(spread(chunk.active, chunk.shape)), kind.size
        results = [np.zeros(chunk.shape, kind.dtype) for _ in range(count)]
        is_failed_attempt = np.full(chunk.shape, is_lock)
        chunk.order_blocks(chunk.active)
        memory = chunk.memory(where)
        for units, index, selected in memory.check_atomic(
            place, width * count, chunk.active, chunk.make_reporter(), chunk.shape
        ):
            cells = units.view(kind.dtype)
            for k, result in enumerate(results):
                operands = [value[selected] for value in (values[k : k + 1] if count > 1 else values)]
                places = index * count + k
                chosen = ftz_sums(operation, cells[places], *operands) if ftz and where == "global" else operation
                old = apply_operation(chosen, cells, places, operands, returns=used)
                place_of_each = tuple(axis[selected] for axis in positions)
                result[place_of_each] = old
                is_failed_attempt[place_of_each] |= cells[places] == old
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
            chunk.record_polling(where, "atomic", width * count, place, cost=cost, is_failed_attempt=is_failed_attempt)
        return results

    reads = [(operand, kind) for source in sources for operand in elements(source, count, instruction)]
    return step_of(instruction, [(target, kind) for target in targets], reads, run_atomic)


def _is_uniform(instruction: Instruction, *operands: Operand) -> bool:
    """Tell if the compiler can prove that operands are uniform in a warp."""
    names = {leaf.name for operand in operands for leaf in iter_leaves(operand) if isinstance(leaf, Register)}
    return names <= instruction.uniform
