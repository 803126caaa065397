"""A kernel ready to run: its PTX parsed, its control flow analysed, its instructions bound to steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..isa.block_barriers import Barrier, barrier_of
from ..isa.dispatch import bind
from ..isa.registry import Step
from ..machine.chunk import GRID_REGISTERS, RESERVED, RESERVED_REGISTER
from ..machine.global_races import reached
from ..machine.polls import Poll, find_polls
from ..machine.warp_clocks import ordered_lanes
from ..ptx.flow import End, Flow, analyse
from ..ptx.parser import parsed
from ..ptx.program import SINK, Entry, Instruction, Program, Register, Special, Symbol, Variable, leaves
from ..source.names import demangled
from ..util.errors import LaunchError, Source, UnsupportedInstructionError
from .lowering import lowered
from .merging import Neighbours, neighbours
from .schedule import Code


@dataclass(frozen=True)
class Executable:
    """A kernel ready to run: its parsed form, its control flow, and its steps."""

    entry: Entry
    flow: Flow
    code: list[Code]
    #: The variables that it names.
    variables: list[Variable]
    #: Its smallest access to shared memory in bytes.
    shared_unit: int
    #: How many registers it writes.
    registers: int
    #: Whether its blocks may wait for each other: it asks for what a cooperative launch provides.
    whole_grid: bool
    #: The functions and kernels whose address it may take.
    functions: list[str]
    #: Accesses that ptxas may merge.
    neighbours: list[Neighbours]
    #: Bytes of shared memory before its own, which cooperative groups ask for.
    reserved: int
    #: Whether it asks for memory of sizes that only the launch knows.
    stack: bool
    #: The parameters and variables through which it loads, and stores (`global_races.reached`).
    through: tuple[set[str], set[str]]
    #: How many lanes of a warp its barriers may tell apart.
    ordered_lanes: int
    #: The loads that may poll, by their identity.
    polls: dict[int, Poll]


@lru_cache(maxsize=256)
def load(ptx_text: str, entry: str) -> Executable:
    """Parse PTX and make one entry ready to run; what is not supported in it raises when a thread reaches it.

    Raises `PtxSyntaxError`, `LaunchError` if there is no such entry, and `UnsupportedInstructionError` if a parameter
    has a type that is not supported.
    """
    return prepare(parsed(ptx_text), entry)


def prepare(program: Program, entry: str) -> Executable:
    """Make one entry of a parsed module ready to run; raises as `load`."""
    if entry not in program.entries:
        raise LaunchError(f"no kernel {entry!r}; the PTX has {', '.join(map(demangled, program.entries)) or 'none'}")
    kernel = program.entries[entry]
    if kernel.problem:
        raise UnsupportedInstructionError(kernel.source, f".entry {entry}", kernel.problem)
    kernel = lowered(program, kernel.parsed())
    with np.errstate(all="ignore"):
        steps = _bound(kernel)
    flow, instructions = analyse(kernel), kernel.instructions
    used = [each for i in instructions for operand in i.operands for each in leaves(operand)]
    named = {each.name for each in used if isinstance(each, Symbol)}
    known = {**program.variables, **kernel.variables}
    work = [*named]
    while work:
        variable = known.get(work.pop())
        more = {name for _, name, _ in variable.addresses} - named if variable else set()
        named |= more
        work += more
    variables = [v for v in known.values() if v.name in named]
    special = {each.name for each in used if isinstance(each, Special)}
    reserved = RESERVED if RESERVED_REGISTER in special else 0
    addresses, _ = laid_out((each for each in variables if each.space == "shared"), reserved)
    return Executable(
        kernel,
        flow,
        list(_code(kernel, flow, steps)),
        variables,
        shared_unit=min((size for i in instructions for size in i.units), default=1),
        registers=len({name for i in instructions for name in i.writes}),
        whole_grid=not special.isdisjoint(GRID_REGISTERS),
        functions=[name for name in (*program.functions, *program.entries) if name in named],
        neighbours=neighbours(instructions, flow.blocks, addresses),
        reserved=reserved,
        stack=any(i.opcode == "alloca" for i in instructions),
        through=reached(instructions),
        ordered_lanes=ordered_lanes(instructions),
        polls=find_polls(instructions, flow),
    )


def _bound(entry: Entry) -> list[Step]:
    """The steps of all instructions. An atomic whose result nobody reads has none, as ptxas has it."""
    code = entry.instructions
    steps = [bind(each) for each in code]
    read = {name for each in code for name in each.reads}
    for place, each in enumerate(code):
        unread = each.opcode == "atom" and each.writes and read.isdisjoint(each.writes)
        if unread and isinstance(each.operands[0], Register):
            code[place] = replace(each, operands=(SINK, *each.operands[1:]))
            steps[place] = bind(code[place])
    return steps


def laid_out(variables: Iterable[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Where variables lie in shared or local memory from an offset on, and its end; dynamic memory comes last."""
    places = {}
    for variable in sorted(variables, key=lambda each: each.size is None):
        places[variable.name] = -(-start // variable.align) * variable.align
        start = places[variable.name] + (variable.size or 0)
    return places, start


def _code(entry: Entry, flow: Flow, bound: list[Step]) -> Iterator[Code]:
    for block in flow.blocks:
        instructions, steps = entry.instructions[block.start : block.stop], bound[block.start : block.stop]
        last, jumps = instructions[-1] if instructions else None, block.end in (End.BRANCH, End.LEAVE)
        guard = last.guard if last and jumps else None
        if last and jumps:
            steps[-1] = lambda chunk: None  # where threads go is the schedule's
        uses = ((name, index) for index, one in enumerate(instructions) for name in one.reads | one.writes)
        dead: list[list[str]] = [[] for _ in instructions]
        for name, index in {name: index for name, index in uses if name not in flow.outliving}.items():
            # The number of a barrier is read when its threads have come.
            if (guard is None or name != guard.name) and (block.end is not End.BARRIER or index + 1 < len(dead)):
                dead[index].append(name)
        source = last.source if last else Source(0)
        barrier = _barrier(last) if last and block.end is End.BARRIER else None
        yield Code(
            list(zip(instructions, steps, dead, strict=True)), block.successors, block.end, guard, source, barrier
        )


def _barrier(instruction: Instruction) -> Barrier | None:
    """What threads wait for; None for what is not supported, where no thread gets to."""
    with suppress(UnsupportedInstructionError):
        return barrier_of(instruction)
    return None
