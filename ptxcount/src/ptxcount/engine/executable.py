"""Executable kernels: parsed PTX, its control flow, and a step (a function) that executes each instruction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..isa.block_barriers import Barrier, parse_barrier
from ..isa.dispatch import bind_instruction
from ..isa.opcode_registry import Step
from ..machine.polls import Poll, find_polls, find_retried_swaps, find_scans
from ..machine.reached_names import ReachedNames, find_reached_names
from ..machine.special_registers import GRID_REGISTERS, RESERVED, RESERVED_REGISTER
from ..machine.warp_clocks import count_ordered_lanes
from ..ptx.flow import BasicBlock, End, Flow, analyse, find_reachable, is_elect_wait
from ..ptx.parser import parse_cached
from ..ptx.program import SINK, Entry, Instruction, Program, Register, Special, Symbol, Variable, iter_leaves
from ..source.names import require_entry
from ..util.errors import Source, UnsupportedInstructionError
from ..util.garbage import pause_collection
from .lowering import lower_calls
from .merging import MergeableGroup, find_mergeable
from .narrowed_loads import find_narrowed_loads
from .reconvergence import Order, order_blocks
from .removed_loads import find_removed_loads
from .uniformity import find_divergent
from .unrolled_loops import unroll_loops

_NO_SOURCE = Source(0)


@dataclass(frozen=True)
class CodeBlock:
    """A basic block as executable steps."""

    #: Each instruction, the step that executes it, and the registers that are dead after it.
    steps: list[tuple[Instruction, Step, list[str]]]
    #: Indices of the basic blocks that may run next: the following one, if threads may fall through, then the target
    #: of a branch.
    successors: list[int]
    #: Kind of the end of the basic block.
    end: End
    #: Number of instructions of the PTX for which the steps stand.
    weight: int = 0
    #: Predicate of the branch or exit at the end.
    guard: Register | None = None
    #: Barrier at the end; None if there is none, or an unsupported one.
    barrier: Barrier | None = None
    #: Source of the last instruction; line 0 if there is none.
    source: Source = _NO_SOURCE


@dataclass(frozen=True)
class Executable:
    """An executable kernel: its parsed form, its control flow, and its basic blocks with their steps."""

    entry: Entry
    flow: Flow
    order: Order
    code: list[CodeBlock]
    #: Variables that the code names, and variables whose addresses are in the initial values of such variables.
    variables: list[Variable]
    #: Bytes of the smallest element of accesses that may be to shared memory: at most 8; 1 without such accesses.
    shared_unit: int
    #: Number of registers that the code writes.
    registers: int
    #: True if thread blocks may wait for each other (cooperative launch).
    syncs_grid: bool
    #: Names of the functions and kernels whose addresses the code takes, or initial values of `variables` have.
    functions: list[str]
    #: Groups of accesses to shared memory that ptxas may merge.
    mergeable_groups: list[MergeableGroup]
    #: Bytes reserved for cooperative groups at the beginning of shared memory.
    reserved: int
    #: True if the code allocates stack memory (``alloca``).
    allocates_stack: bool
    #: Names of the parameters and variables through which the code accesses global memory.
    reached_names: ReachedNames
    #: Number of clocks that a warp needs (`warp_clocks.count_ordered_lanes`).
    ordered_lanes: int
    #: Loads that may poll, and atomics that may be tried again (`polls.find_polls`), by the instruction's ``id``.
    polls: dict[int, Poll]
    #: The ``id`` of each weak load whose value ends a loop (`polls.find_scans`).
    scans: frozenset[int]


@lru_cache(maxsize=256)
def load_executable(ptx_text: str, entry: str) -> Executable:
    """Parse PTX, and prepare one kernel. An unsupported instruction raises an error when a thread reaches it.

    Raises `PtxSyntaxError`, `LaunchError` if there is no such entry, and `UnsupportedInstructionError` if the
    parameters or the control flow are not supported.
    """
    return prepare_executable(parse_cached(ptx_text), entry)


@pause_collection()
def prepare_executable(program: Program, entry: str) -> Executable:
    """Prepare one kernel of a parsed module; raise the errors of `load_executable`."""
    require_entry(program.entries, entry)
    kernel = program.entries[entry]
    if kernel.problem:
        raise UnsupportedInstructionError(kernel.source, f".entry {entry}", kernel.problem)
    kernel = lower_calls(program, kernel.parse_body())
    kernel, flow, steps = _bind_kernel(kernel)
    instructions, all_variables = kernel.instructions, {**program.variables, **kernel.variables}
    operands = [operand for instruction in instructions for operand in instruction.operands]
    leaves = [leaf for operand in operands for leaf in iter_leaves(operand)]
    special = {leaf.name for leaf in leaves if isinstance(leaf, Special)}
    named = _find_named([leaf.name for leaf in leaves if isinstance(leaf, Symbol)], all_variables)
    variables = [variable for variable in all_variables.values() if variable.name in named]
    reserved = RESERVED if RESERVED_REGISTER in special else 0
    scans = find_scans(instructions, flow)
    addresses, _ = lay_out_variables((variable for variable in variables if variable.space == "shared"), reserved)
    return Executable(
        entry=kernel,
        flow=flow,
        order=order_blocks(kernel, flow),
        code=[_make_code_block(block, instructions, steps, flow.live_across_blocks) for block in flow.blocks],
        variables=variables,
        shared_unit=min((size for instruction in instructions for size in instruction.units), default=1),
        registers=len({name for instruction in instructions for name in instruction.writes}),
        syncs_grid=not special.isdisjoint(GRID_REGISTERS),
        functions=[name for name in (*program.functions, *program.entries) if name in named],
        mergeable_groups=find_mergeable(instructions, flow.blocks, addresses),
        reserved=reserved,
        allocates_stack=any(instruction.opcode == "alloca" for instruction in instructions),
        reached_names=find_reached_names(instructions, scans),
        ordered_lanes=count_ordered_lanes(instructions),
        polls=find_polls(instructions, flow),
        scans=scans,
    )


def _bind_kernel(kernel: Entry) -> tuple[Entry, Flow, list[Step]]:
    """Return the kernel, its control flow, and the step of each instruction, with the effects of ptxas.

    Loops are unrolled if ptxas unrolls them. Atomics and loads get steps that depend on the code around them.
    """
    with np.errstate(all="ignore"):
        steps = [bind_instruction(instruction) for instruction in kernel.instructions]
        flow = analyse(kernel)
        if unrolled := unroll_loops(kernel, flow):
            kernel = unrolled
            steps = [bind_instruction(instruction) for instruction in kernel.instructions]
            flow = analyse(kernel)
        _rebind_atomics(kernel.instructions, steps, flow)
        _rebind_loads(kernel.instructions, steps, flow)
    return kernel, flow, steps


def _find_named(symbols: Iterable[str], variables: Mapping[str, Variable]) -> Set[str]:
    """Return the symbols of the code, and those in the initial values of named variables."""

    def list_initial_names(name: str) -> list[str]:
        return [target for _, target, _ in variables[name].addresses] if name in variables else []

    return find_reachable(list_initial_names, symbols)


def _rebind_atomics(code: list[Instruction], steps: list[Step], flow: Flow) -> None:
    """Replace atomics and their steps, with facts of the whole kernel: unread results, uniform registers, retries."""
    read = {name for instruction in code for name in instruction.reads}
    atomics = [place for place, atomic in enumerate(code) if atomic.opcode in ("atom", "red") and atomic.operands]
    if not atomics:
        return
    divergent, retried = find_divergent(code, flow), find_retried_swaps(code, flow)
    for place in atomics:
        atomic = code[place]
        target, *others = atomic.operands
        is_unread = atomic.opcode == "atom" and isinstance(target, Register) and read.isdisjoint(atomic.writes)
        code[place] = replace(
            atomic,
            operands=(SINK if is_unread else target, *others),
            uniform=frozenset(atomic.reads - divergent),
            is_retried=id(atomic) in retried,
        )
        steps[place] = bind_instruction(code[place])


def _rebind_loads(code: list[Instruction], steps: list[Step], flow: Flow) -> None:
    """Replace loads and their steps: ptxas makes some narrower, and removes others, which are not counted."""
    removed = find_removed_loads(code, flow.blocks)
    changed = find_narrowed_loads(code, removed) | dict.fromkeys(removed, ())
    for place, parts in changed.items():
        code[place] = replace(code[place], is_removed=place in removed, parts=parts)
        steps[place] = bind_instruction(code[place])


def lay_out_variables(variables: Iterable[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Lay out variables in shared or local memory from offset ``start``; arrays of unknown size come last, and overlap.

    Return the byte offset of each variable by name, and the offset after the last variable.
    """
    places = {}
    for variable in sorted(variables, key=lambda candidate: candidate.size is None):
        places[variable.name] = -(-start // variable.align) * variable.align
        start = places[variable.name] + (variable.size or 0)
    return places, start


def _make_code_block(
    block: BasicBlock, code: Sequence[Instruction], all_steps: Sequence[Step], live_across_blocks: Set[str]
) -> CodeBlock:
    instructions = code[block.start : block.stop]
    if not instructions:
        return CodeBlock([], block.successors, block.end)
    last, dead = instructions[-1], _find_dead_registers(instructions, live_across_blocks)
    steps = list(zip(instructions, all_steps[block.start : block.stop], dead, strict=True))
    guard = barrier = None
    # The schedule executes jumps and barriers, and then reads the guard of a jump or the operands of a barrier.
    if block.end in (End.BRANCH, End.EXIT):
        steps[-1], guard = (last, lambda chunk: None, []), last.guard
    elif block.end is End.BARRIER:
        steps[-1] = last, steps[-1][1], []
        if is_elect_wait(last):
            steps.pop()  # this wait and the ``elect`` after it count as one instruction
        with suppress(UnsupportedInstructionError):  # the step of an unsupported barrier raises the error
            barrier = parse_barrier(last)
    weight = sum(instruction.weight for instruction, _, _ in steps)
    return CodeBlock(steps, block.successors, block.end, weight, guard, barrier, last.source)


def _find_dead_registers(instructions: Sequence[Instruction], live_across_blocks: Set[str]) -> list[list[str]]:
    """Return the registers that are dead after each instruction: those of no other basic block, at their last use."""
    last_use: dict[str, int] = {}
    for index, instruction in enumerate(instructions):
        last_use |= dict.fromkeys((instruction.reads | instruction.writes) - live_across_blocks, index)
    dead: list[list[str]] = [[] for _ in instructions]
    for name, index in last_use.items():
        dead[index].append(name)
    return dead
