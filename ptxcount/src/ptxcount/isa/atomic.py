"""``atom`` and ``red``: atomic operations on global and shared memory (PTX ISA, "Parallel Synchronization").

ptxas compiles 16-bit atomics to CAS loops on 32-bit words (sm_90, nvcc 13.0.88). ``atom.add`` of f16 and bf16 reads the
32-bit word and repeats a 32-bit CAS until it succeeds. ``atom.cas.b16`` repeats only if the other half of the word has
changed. Lanes succeed in lane order (measured: 264 launches of one warp on an H200).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..counting.atomic_costs import AtomicCost, find_atomic_cost
from ..counting.transactions import WORD
from ..lanes.symbolic_values import Value, dense
from ..lanes.warps import LANES, Array, spread, warp_count
from ..machine.chunk import Chunk
from ..ptx.program import SINK, Immediate, Instruction, Operand, Register, Type, format_operand, iter_leaves
from .atomic_operations import ATOMICS, AtomicOperation, apply_operation, choose_sum, find_operation
from .opcode_registry import Step, binds, make_step
from .operands import expect_count, make_address_reader, split_vector, unsupported
from .spaces import decode_access, dispatch_by_space

_SPACES = ("global", "shared")


@binds("atom", "red")
def _bind_atomic(instruction: Instruction) -> Step | None:
    """Bind ``atom{.hints}{.space}.op{.noftz}{.vec}.type d, [a], b{, c}``, and ``red`` without ``d``."""
    if "async" in instruction.modifiers:
        return None  # see `hopper.async_stores`
    space, count, kind, names = decode_access(instruction, allows_others=True)
    operation = find_operation(instruction, names, kind)
    if count > 1 and operation.operands > 1:
        raise unsupported(
            instruction, f".{names[0]} does not exist for vectors; remove .v{count}, or use another operation"
        )
    if space not in (None, *_SPACES):
        raise unsupported(instruction, f"{space} memory has no atomics; global and shared memory have")
    has_target = instruction.opcode == "atom"
    expect_count(instruction, operation.operands + (2 if has_target else 1))
    targets = split_vector(instruction, instruction.operands[0], count) if has_target else ()
    address, *sources = instruction.operands[1:] if has_target else instruction.operands
    returns = any(target is not SINK for target in targets)
    is_swap, is_sum = names[0] in ("cas", "exch"), names == ["add"] and kind.name == "f32"
    cost = find_atomic_cost(
        names[0],
        kind,
        returns=returns,
        adds_one=sources[0] == Immediate(1),
        uniform_value=_is_uniform(instruction, *sources),
        uniform_address=_is_uniform(instruction, address),
    )
    form = (instruction, address, operation, kind, count)
    atomic = _Atomic(*form, returns=returns, cost=cost, is_swap=is_swap, is_float_sum=is_sum)
    read = make_address_reader(instruction, address, space)

    def run_atomic(chunk: Chunk, *operands: Array) -> list[Array]:
        return dispatch_by_space(space, read, partial(atomic.update_memory, operands))(chunk)

    reads = [(operand, kind) for source in sources for operand in split_vector(instruction, source, count)]
    return make_step(instruction, [(target, kind) for target in targets], reads, run_atomic)


def _is_uniform(instruction: Instruction, *operands: Operand) -> bool:
    names = {leaf.name for operand in operands for leaf in iter_leaves(operand) if isinstance(leaf, Register)}
    return names <= instruction.uniform


@dataclass(frozen=True)
class _Atomic:
    instruction: Instruction
    address: Operand
    operation: AtomicOperation
    #: Type of an element, and elements per thread: several for a vector.
    kind: Type
    count: int
    #: True if a register gets the old values.
    returns: bool
    cost: AtomicCost
    #: True for ``cas`` and ``exch``, which a loop may repeat until it gets a lock.
    is_swap: bool
    #: True for ``add.f32``, which flushes subnormals in global memory.
    is_float_sum: bool

    def update_memory(self, operands: Sequence[Array], chunk: Chunk, space: str, address: Value) -> list[Array]:
        """Update global or shared memory; return the old values of the active threads, and zeros for all others.

        For a vector, there is an array of old values, and an operand, for each element.
        """
        if space not in _SPACES:
            problem = f"{format_operand(self.address)} is in {space} memory, which has no atomics"
            raise unsupported(self.instruction, f"{problem}; global and shared memory have")
        positions = np.nonzero(spread(chunk.active, chunk.shape))
        values = [spread(operand, chunk.shape)[positions] for operand in operands]
        results = [np.zeros(chunk.shape, self.kind.dtype) for _ in range(self.count)]
        may_poll = np.full(chunk.shape, self.is_swap)
        chunk.order_blocks(chunk.active)
        size, report = self.kind.size * self.count, chunk.make_reporter()
        memory = chunk.find_memory(space)
        for units, index, selected in memory.find_atomic_cells(address, size, chunk.active, report, chunk.shape):
            cells, threads = units.view(self.kind.dtype), tuple(axis[selected] for axis in positions)
            for element, result in enumerate(results):
                arguments = [value[selected] for value in values[element :: self.count]]
                places = index * self.count + element
                result[threads] = self._apply(chunk, space, cells, places, arguments)
                may_poll[threads] |= cells[places] == result[threads]
        chunk.shared.order_blocks(chunk.active)
        if size == 2:
            self._count_swap_rounds(chunk, space, address, results[0][positions], values)
        else:
            chunk.record_polling(space, "atomic", size, address, cost=self.cost, may_poll=may_poll)
        return results

    def _apply(self, chunk: Chunk, space: str, cells: Array, places: Array, arguments: list[Array]) -> Array:
        """Update ``cells[places]`` and return the old values; note if the chunk wrote memory, or may poll."""
        operation = self.operation
        if self.is_float_sum and space == "global":
            operation = choose_sum(operation, cells[places], *arguments)
        old = apply_operation(operation, cells, places, arguments, returns=self.returns)
        if self.returns and (cells[places] == old).all():  # a loop may be waiting for other threads
            chunk.spins += 1
        else:
            chunk.has_written, chunk.spins = True, 0
        return old

    def _count_swap_rounds(self, chunk: Chunk, space: str, address: Value, old: Array, operands: list[Array]) -> None:
        """Count a 16-bit atomic: a load, then a CAS on the 32-bit word for each round of `_iter_swap_rounds`."""
        words = dense(address).astype(np.int64) & -WORD
        chunk.record(space, "load", WORD, words)
        for number, active in enumerate(_iter_swap_rounds(self.operation, chunk, address, old, operands)):
            chunk.record(space, "atomic", self.kind.size, words, active=active, cost=self.cost, is_replay=number > 0)


def _iter_swap_rounds(
    operation: AtomicOperation, chunk: Chunk, address: Value, old: Array, operands: Sequence[Array]
) -> Iterator[Array]:
    """Yield the threads of each CAS round, as masks of the chunk's shape.

    In a round, all waiting lanes of a warp try. The first lane that changes the word wins. It is finished, and so are
    the lanes before it, which change nothing. The lanes after it try again; of ``cas``, only those on the other half.

    ``address`` has the addresses of the threads. ``old`` are the 16-bit values before the operations of the active
    threads, in thread order, and ``operands`` the operands of these threads.
    """
    shape = chunk.shape
    row, thread = np.nonzero(spread(chunk.active, shape))
    addresses = spread(dense(address).astype(np.int64), shape)[row, thread]
    warp = row * warp_count(shape[1]) + thread // LANES
    half, first = _number_places(warp, addresses)
    word, _ = _number_places(warp, addresses // WORD)
    contents, waiting = old[first], np.arange(len(row))  # of each half; numbers of threads
    while waiting.size:
        active = np.zeros(shape, bool)
        active[row[waiting], thread[waiting]] = True
        yield active
        own_half, own_word = half[waiting], word[waiting]
        new = operation.update(contents[own_half], *(operand[waiting] for operand in operands))
        new = new.astype(contents.dtype, copy=False)
        changes = new.view("u2") != contents[own_half].view("u2")
        # The first thread that changes each word; without one, a number above all threads.
        winner = np.full(int(word.max()) + 1, len(row))
        np.minimum.at(winner, own_word[changes], waiting[changes])
        own_winner = winner[own_word]
        wins = waiting == own_winner
        contents[own_half[wins]] = new[wins]
        retries = waiting > own_winner
        if operation is ATOMICS["cas"]:
            retries &= own_half != half.take(own_winner, mode="clip")
        waiting = waiting[retries]


def _number_places(warp: Array, places: Array) -> tuple[Array, Array]:
    """Give a number to each place of a warp; return each thread's number, and the first thread of each number."""
    _, first, number = np.unique(np.stack([warp, places]), axis=1, return_index=True, return_inverse=True)
    return number.ravel(), first
