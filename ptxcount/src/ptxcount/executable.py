"""A kernel ready to run: its PTX parsed, its control flow analysed, its instructions bound to steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from .bind import bind
from .bind_warp import Barrier, barrier_of
from .chunk import GRID_REGISTERS, RESERVED, RESERVED_REGISTER, Chunk
from .errors import LaunchError, Source, UnsupportedInstructionError
from .flow import End, Flow, analyse, end_of, reads_and_writes
from .global_races import reached
from .lowering import GIVEN, lowered
from .merging import Neighbours, neighbours
from .parser import parse
from .program import (
    SINK,
    TYPES,
    Address,
    Entry,
    Group,
    Instruction,
    Operand,
    Program,
    Register,
    Special,
    Symbol,
    Variable,
)
from .schedule import Code


@dataclass(frozen=True)
class Executable:
    """A kernel ready to run.

    Attributes
    ----------
    entry : Entry
        Its parsed form.
    flow, code : Flow, list of Code
        Its control flow, and its steps.
    variables : list of Variable
        Those that it names.
    shared_unit : int
        Its smallest access to shared memory in bytes.
    registers : int
        How many registers it writes.
    whole_grid : bool
        Whether its blocks may wait for each other: it asks for what a cooperative launch provides.
    functions : tuple of str
        The functions and kernels whose address it may take.
    neighbours : list of Neighbours
        Accesses that ptxas may merge.
    reserved : int
        Bytes of shared memory before its own, which cooperative groups ask for.
    stack : bool
        Whether it asks for memory of sizes that only the launch knows.
    read, stored : frozenset of str
        The parameters and variables through which it loads and stores (`global_races.reached`).
    """

    entry: Entry
    flow: Flow
    code: list[Code]
    variables: list[Variable]
    shared_unit: int
    registers: int
    whole_grid: bool = False
    functions: tuple[str, ...] = ()
    neighbours: list[Neighbours] = field(default_factory=list)
    reserved: int = 0
    stack: bool = False
    read: frozenset[str] = frozenset()
    stored: frozenset[str] = frozenset()


@lru_cache(maxsize=256)
def load(ptx_text: str, entry: str) -> Executable:
    """Parse PTX and make one entry ready to run; what is not supported in it raises when a thread reaches it.

    Raises `PtxSyntaxError`, `LaunchError` if there is no such entry, and `UnsupportedInstructionError` if a parameter
    has a type that is not supported.
    """
    return prepare(parsed(ptx_text), entry)


#: `parser.parse`, which remembers the last texts.
parsed = lru_cache(maxsize=8)(parse)


def prepare(program: Program, entry: str) -> Executable:
    """Make one entry of a parsed module ready to run; raises as `load`."""
    if entry not in program.entries:
        raise LaunchError(f"no kernel {entry!r}; the PTX has {', '.join(program.entries) or 'none'}")
    kernel = program.entries[entry]
    if kernel.problem:
        raise UnsupportedInstructionError(kernel.source, f".entry {entry}", kernel.problem)
    kernel = lowered(program, kernel.parsed())
    if any(i.opcode == "atom" for i in kernel.instructions):
        used = {name for i in kernel.instructions for name in reads_and_writes(i)[0]}
        kernel.instructions = [_without_result(i, used) for i in kernel.instructions]
    flow = analyse(kernel)
    with np.errstate(all="ignore"):
        code = list(_code(kernel, flow))
    units = [size for i in kernel.instructions for size in _units(i)]
    written = {name for i in kernel.instructions for name in reads_and_writes(i)[1]}
    named = {name for i in kernel.instructions for operand in i.operands for name in _symbols(operand)}
    known = {**program.variables, **kernel.variables}
    work = [*named]
    while work:
        variable = known.get(work.pop())
        more = {name for _, name, _ in variable.addresses} - named if variable else set()
        named |= more
        work += more
    variables = [v for v in known.values() if v.name in named]
    code_names = [name for name in (*program.functions, *program.entries) if name in named]
    special = {o.name for i in kernel.instructions for o in i.operands if isinstance(o, Special)}
    whole_grid = not special.isdisjoint(GRID_REGISTERS)
    reserved = RESERVED if RESERVED_REGISTER in special else 0
    addresses, _ = laid_out((each for each in variables if each.space == "shared"), reserved)
    near = neighbours(kernel.instructions, flow.blocks, addresses)
    stack = any(i.opcode == "alloca" for i in kernel.instructions)
    read, stored = map(frozenset, reached(kernel.instructions))
    return Executable(
        kernel, flow, code, variables, min(units, default=1), len(written), whole_grid, tuple(code_names), near,
        reserved, stack, read, stored,
    )  # fmt: skip


#: Instructions that reach shared memory, and the bytes of their smallest access if no type says it.
_REACHING = {"ld": 0, "st": 0, "atom": 0, "red": 0, "wmma": 4, "cp": 4, "ldmatrix": 4, "stmatrix": 4}


def _units(instruction: Instruction) -> list[int]:
    """The bytes of the smallest access of an instruction to shared memory, if it may have any."""
    if instruction.opcode not in _REACHING or {"param", GIVEN, "const", "local", "mma"} & {*instruction.modifiers}:
        return []
    fixed = _REACHING[instruction.opcode]
    typed = [min(TYPES[name].size, fixed or 8) for name in instruction.modifiers if name in TYPES]
    if instruction.opcode in ("ldmatrix", "stmatrix", "cp"):
        return [fixed]
    return [] if "global" in instruction.modifiers else typed or [4]


def _without_result(instruction: Instruction, used: set[str]) -> Instruction:
    """An atomic whose result nobody reads has none, as ptxas has it."""
    first = instruction.operands[0] if instruction.operands else None
    if instruction.opcode == "atom" and isinstance(first, Register) and first.name not in used:
        return replace(instruction, operands=(SINK, *instruction.operands[1:]))
    return instruction


def laid_out(variables: Iterable[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Where variables lie in shared or local memory from an offset on, and its end; dynamic memory comes last."""
    places = {}
    for variable in sorted(variables, key=lambda each: each.size is None):
        places[variable.name] = -(-start // variable.align) * variable.align
        start = places[variable.name] + (variable.size or 0)
    return places, start


def _symbols(operand: Operand) -> list[str]:
    if isinstance(operand, Address) and operand.base is not None:
        return _symbols(operand.base)
    if isinstance(operand, Group):
        return [name for item in operand.items for name in _symbols(item)]
    return [operand.name] if isinstance(operand, Symbol) else []


def _code(entry: Entry, flow: Flow) -> Iterator[Code]:
    for block in flow.blocks:
        instructions = entry.instructions[block.start : block.stop]
        ends = [end_of(entry, instruction) for instruction in instructions]
        last_use: dict[str, int] = {}
        for index, instruction in enumerate(instructions):
            reads, writes = reads_and_writes(instruction)
            last_use |= {name: index for name in (*reads, *writes) if name not in flow.outliving}
        last, end = (instructions[-1], ends[-1]) if instructions else (None, End.LEAVE)
        guard = last.guard if last and end.is_jump else None
        steps = []
        dead: list[list[str]] = [[] for _ in instructions]
        for name, index in last_use.items():
            if guard is None or name != guard.name:
                dead[index].append(name)
        for index, instruction in enumerate(instructions):
            steps.append((_nothing if ends[index].is_jump else bind(instruction), tuple(dead[index])))
        source = last.source if last else Source(0)
        barrier = _barrier(last) if last and end is End.BARRIER else None
        yield Code(tuple(steps), tuple(block.successors), end, guard, source, barrier)


def _barrier(instruction: Instruction) -> Barrier | None:
    """What threads wait for; None for what is not supported, where no thread gets to."""
    with suppress(UnsupportedInstructionError):
        return barrier_of(instruction)
    return None


def _nothing(chunk: Chunk) -> None:
    """The step of a jump: where threads go is the schedule's."""
