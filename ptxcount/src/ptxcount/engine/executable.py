"""Executable kernels: parsed PTX, analysed control flow, instructions bound to steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..isa.block_barriers import Barrier, parse_barrier
from ..isa.dispatch import bind_instruction
from ..isa.opcode_registry import Step
from ..machine.global_races import ReachedNames, find_reached_names
from ..machine.polls import Poll, find_polls, find_retried_swaps, find_scans, rank_blocks
from ..machine.special_registers import GRID_REGISTERS, RESERVED, RESERVED_REGISTER
from ..machine.warp_clocks import count_ordered_lanes
from ..ptx.flow import End, Flow, analyse, find_reachable, is_elect_wait
from ..ptx.parser import parse_cached
from ..ptx.program import SINK, Entry, Instruction, Program, Register, Special, Symbol, Variable, iter_leaves
from ..source.names import require_entry
from ..util.errors import Source, UnsupportedInstructionError
from .lowering import lower_calls
from .merging import MergeableGroup, find_mergeable
from .uniformity import find_divergent


@dataclass(frozen=True)
class CodeBlock:
    """A basic block as executable steps."""

    #: Each instruction, the step that executes it, and the registers that are dead after it.
    steps: list[tuple[Instruction, Step, list[str]]]
    #: Indices of the basic blocks after it: the next one, if threads may go on, then the target of a branch.
    successors: list[int]
    #: Kind of its end.
    end: End
    #: Predicate of a branch or an exit.
    guard: Register | None
    #: Source of the last instruction; line 0 if there is none.
    source: Source
    #: Barrier at its end; None if it has none, or an unsupported one.
    barrier: Barrier | None


@dataclass(frozen=True)
class Executable:
    """An executable kernel: its parsed form, its control flow, and its basic blocks with their steps."""

    entry: Entry
    flow: Flow
    code: list[CodeBlock]
    #: Variables that it references, and variables whose addresses these contain.
    variables: list[Variable]
    #: Bytes of its smallest element in shared memory: at most 8; 1 without accesses.
    shared_unit: int
    #: Number of registers that it writes.
    registers: int
    #: True if its blocks may wait for each other (cooperative launch).
    syncs_grid: bool
    #: Names of the functions and kernels whose address it takes.
    functions: list[str]
    #: Groups of accesses to shared memory that ptxas may merge.
    mergeable_groups: list[MergeableGroup]
    #: Bytes reserved for cooperative groups at the beginning of shared memory.
    reserved: int
    #: True if it allocates stack memory (``alloca``).
    allocates_stack: bool
    #: Names of the parameters and variables through which it accesses global memory.
    reached_names: ReachedNames
    #: Number of clocks that a warp needs (`warp_clocks.count_ordered_lanes`).
    ordered_lanes: int
    #: Loads that may poll, and atomics that may be tried again, by the instruction's ``id``.
    polls: dict[int, Poll]
    #: The ``id`` of each weak load whose value ends a loop; none without strong writes.
    scans: frozenset[int]


@lru_cache(maxsize=256)
def load_executable(ptx_text: str, entry: str) -> Executable:
    """Parse PTX, and prepare one kernel. An unsupported instruction raises an error when a thread reaches it.

    Raises `PtxSyntaxError`, `LaunchError` if there is no such entry, and `UnsupportedInstructionError` if the
    parameters or the control flow are not supported.
    """
    return prepare_executable(parse_cached(ptx_text), entry)


def prepare_executable(program: Program, entry: str) -> Executable:
    """Prepare one kernel of a parsed module; raise the errors of `load_executable`."""
    require_entry(program.entries, entry)
    kernel = program.entries[entry]
    if kernel.problem:
        raise UnsupportedInstructionError(kernel.source, f".entry {entry}", kernel.problem)
    kernel = lower_calls(program, kernel.parse_body())
    with np.errstate(all="ignore"):
        steps = [bind_instruction(instruction) for instruction in kernel.instructions]
        flow, instructions = analyse(kernel), kernel.instructions
        _rebind_atomics(instructions, steps, flow)
    operands = [
        leaf for instruction in instructions for operand in instruction.operands for leaf in iter_leaves(operand)
    ]
    all_variables = {**program.variables, **kernel.variables}
    addressed_names = {name: [target for _, target, _ in v.addresses] for name, v in all_variables.items()}
    symbols = [leaf.name for leaf in operands if isinstance(leaf, Symbol)]
    named = find_reachable(lambda name: addressed_names.get(name, ()), symbols)
    variables = [variable for variable in all_variables.values() if variable.name in named]
    special = {leaf.name for leaf in operands if isinstance(leaf, Special)}
    reserved = RESERVED if RESERVED_REGISTER in special else 0
    scans = find_scans(instructions, flow)
    addresses, _ = lay_out_variables((variable for variable in variables if variable.space == "shared"), reserved)
    return Executable(
        kernel,
        replace(flow, rank=rank_blocks(instructions, flow)),
        list(_iter_code(kernel, flow, steps)),
        variables,
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


def _rebind_atomics(code: list[Instruction], steps: list[Step], flow: Flow) -> None:
    """Bind atomics again, with facts of the whole kernel: unused results, uniform registers, and retried swaps."""
    atomics = [place for place, atomic in enumerate(code) if atomic.opcode in ("atom", "red") and atomic.operands]
    if not atomics:
        return
    divergent, retried = find_divergent(code, flow), find_retried_swaps(code, flow)
    read = {name for instruction in code for name in instruction.reads}
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


def lay_out_variables(variables: Iterable[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Lay out variables in shared or local memory from ``start``, the dynamic array last.

    Return the byte offset of each variable by name, and the end.
    """
    places = {}
    for variable in sorted(variables, key=lambda candidate: candidate.size is None):
        places[variable.name] = -(-start // variable.align) * variable.align
        start = places[variable.name] + (variable.size or 0)
    return places, start


def _iter_code(entry: Entry, flow: Flow, all_steps: list[Step]) -> Iterator[CodeBlock]:
    """Yield each basic block.

    Each step lists the registers that are dead after it: those that only this block uses, at their last use.
    """
    for block in flow.blocks:
        instructions, steps = entry.instructions[block.start : block.stop], all_steps[block.start : block.stop]
        last, guard, barrier = instructions[-1] if instructions else None, None, None
        if last and block.end in (End.BRANCH, End.EXIT):
            guard = last.guard
            steps[-1] = lambda chunk: None  # the schedule executes branches
        elif last and block.end is End.BARRIER:
            barrier = _find_barrier(last)
        last_use: dict[str, int] = {}
        for index, instruction in enumerate(instructions):
            last_use |= dict.fromkeys((instruction.reads | instruction.writes) - flow.live_across_blocks, index)
        dead: list[list[str]] = [[] for _ in instructions]
        for name, index in last_use.items():
            # After the last step, the schedule reads the guard of a branch, or the operands of a barrier.
            if block.end is End.FALL_THROUGH or index + 1 < len(dead):
                dead[index].append(name)
        if last and is_elect_wait(last):
            steps.pop()  # the schedule lets the threads wait, and counts one instruction
        executable_steps = list(zip(instructions, steps, dead, strict=False))
        source = last.source if last else Source(0)
        yield CodeBlock(executable_steps, block.successors, block.end, guard, source, barrier)


def _find_barrier(instruction: Instruction) -> Barrier | None:
    """Return the barrier of an instruction; None for an unsupported one, whose step raises an error."""
    with suppress(UnsupportedInstructionError):
        return parse_barrier(instruction)
    return None
