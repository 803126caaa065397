"""Launch a kernel: compile its PTX to steps, lay out its memory, and run its grid chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .bind import bind
from .chunk import Chunk, Context
from .counters import LaunchCounters
from .errors import Index3, LaunchError, Source
from .flow import Flow, analyse, is_barrier, reads_and_writes
from .memory import GlobalMemory
from .parser import parse
from .program import TYPES, Entry, Program, Variable
from .schedule import Code, Schedule

Array = npt.NDArray[Any]
Argument = Array | np.generic

#: Threads that run together: enough to make NumPy's cost a call small, few enough for registers to stay in cache.
CHUNK_THREADS = 1 << 17
#: Bytes that the registers and the shared memory of a chunk may take.
CHUNK_BYTES = 256 << 20
#: Instructions that a chunk may execute: an endless loop ends in a minute, a long kernel does not.
STEP_LIMIT = 2_000_000
#: Limits of a launch (CUDA C++ programming guide, technical specifications per compute capability).
MAX_THREADS = 1024
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_SHARED = 227 * 1024
_JUMPS = {"bra": "branch", "ret": "leave", "exit": "leave"}


@dataclass(frozen=True)
class Kernel:
    """A kernel ready to run: its parsed form, control flow and steps."""

    program: Program
    entry: Entry
    flow: Flow
    code: list[Code]
    shared_unit: int
    registers: int


@lru_cache(maxsize=256)
def load(ptx_text: str, entry: str) -> Kernel:
    """Parse PTX and make one entry ready to run.

    Raises
    ------
    PtxSyntaxError, UnsupportedInstructionError
        The text is not PTX, or not of the supported subset.
    LaunchError
        There is no such entry.
    """
    return prepare(_parsed(ptx_text), entry)


_parsed = lru_cache(maxsize=8)(parse)


def prepare(program: Program, entry: str) -> Kernel:
    """Make one entry of a parsed module ready to run; raises as `load`."""
    if entry not in program.entries:
        raise LaunchError(f"no kernel {entry!r}; the PTX has {', '.join(program.entries) or 'none'}")
    parsed = program.entries[entry]
    flow = analyse(parsed)
    with np.errstate(all="ignore"):
        code = list(_code(parsed, flow))
    shared = [
        i
        for i in parsed.instructions
        if i.opcode in ("ld", "st", "atom", "red") and not {"param", "global"} & {*i.modifiers}
    ]
    units = [TYPES[name].size for i in shared for name in i.modifiers if name in TYPES]
    names = {name for i in parsed.instructions for name in reads_and_writes(i)[1]}
    return Kernel(program, parsed, flow, code, min(units, default=1), len(names))


def _code(entry: Entry, flow: Flow) -> Iterator[Code]:
    for block in flow.blocks:
        instructions = entry.instructions[block.start : block.stop]
        last_use: dict[str, int] = {}
        for index, instruction in enumerate(instructions):
            reads, writes = reads_and_writes(instruction)
            last_use |= {name: index for name in (*reads, *writes) if name not in flow.outliving}
        last = instructions[-1] if instructions else None
        ends = _JUMPS.get(last.opcode, "go on") if last else "leave"
        if last and is_barrier(last):
            ends = "barrier"
        guard = last.guard if last and ends in ("branch", "leave") else None
        steps = []
        for index, instruction in enumerate(instructions):
            dead = tuple(n for n, use in last_use.items() if use == index and (guard is None or n != guard.name))
            jump = instruction.opcode in _JUMPS
            steps.append((_nothing if jump else bind(instruction, flow.outliving), dead))
        source = last.source if last else Source(0)
        idle = all(instruction.opcode in _JUMPS for instruction in instructions)
        yield Code(tuple(steps), tuple(block.successors), ends, guard, source, idle)


def _nothing(chunk: Chunk) -> None:
    """The step of a jump: where threads go is the schedule's."""


def run(
    ptx_text: str,
    entry: str,
    grid: Index3,
    block: Index3,
    args: Sequence[Argument],
    *,
    dynamic_shared: int = 0,
    step_limit: int = STEP_LIMIT,
) -> LaunchCounters:
    """Execute a kernel for a whole grid, and count its memory transactions.

    Parameters
    ----------
    ptx_text : str
        A PTX module, as ``nvcc --ptx -lineinfo`` writes it.
    entry : str
        The kernel's name in it.
    grid, block : tuple of int
        Blocks of the grid and threads of a block, as (x, y, z).
    args : sequence of ndarray or NumPy scalar
        An array (C-contiguous, modified in place) for each pointer, aligned to 256 bytes as far as the kernel can see;
        a NumPy scalar of the right size for each other parameter.
    dynamic_shared : int
        Bytes of dynamic shared memory.
    step_limit : int
        Instructions that a chunk of blocks may execute before `StepLimitExceededError`.

    Returns
    -------
    LaunchCounters
        Requests, sectors and wavefronts by instruction, and instructions executed.

    Raises
    ------
    PtxSyntaxError, UnsupportedInstructionError, LaunchError
        Before anything runs.
    KernelFaultError
        The kernel is wrong; arrays may be partly modified.
    """
    kernel = load(ptx_text, entry)
    context = _context(kernel, grid, block, args, dynamic_shared, step_limit)
    with np.errstate(all="ignore"):
        for first, stop in _chunks(kernel, context):
            schedules = [Schedule(Chunk(context, np.arange(first, stop)), kernel.code, kernel.flow)]
            while schedules:
                schedules += schedules.pop().run()
    counters = context.counters
    counters.accesses = sorted(context.accesses.values(), key=lambda access: access.source.ptx_line)
    return counters


def _context(
    kernel: Kernel, grid: Index3, block: Index3, args: Sequence[Argument], dynamic_shared: int, step_limit: int
) -> Context:
    threads = int(np.prod(block))
    for what, extent, limit in (("grid", grid, MAX_GRID), ("block", block, (1024, 1024, 64))):
        if len(extent) != 3 or not all(1 <= n <= most for n, most in zip(extent, limit, strict=True)):
            raise LaunchError(f"{what} {extent}: three numbers from 1 to {limit} are allowed")
    if threads > MAX_THREADS:
        raise LaunchError(f"block {block}: {threads} threads, {MAX_THREADS} are allowed")
    memory = GlobalMemory()
    symbols: dict[str, int] = {}
    sizes = {"shared": 0, "local": 0}
    variables = [*kernel.program.variables.values(), *kernel.entry.variables.values()]
    for variable in sorted(variables, key=lambda v: v.size is None):  # dynamic shared memory follows the static
        if variable.space in sizes:
            start = -(-sizes[variable.space] // variable.align) * variable.align
            symbols[variable.name] = start
            sizes[variable.space] = start if variable.size is None else start + variable.size
        else:
            symbols[variable.name] = memory.add(_initial(variable), variable.name)
    shared = sizes["shared"] + dynamic_shared
    if dynamic_shared < 0 or shared > MAX_SHARED:
        raise LaunchError(f"{shared} bytes of shared memory a block; from 0 to {MAX_SHARED} are allowed")
    if sizes["local"] > 512 << 10:
        raise LaunchError(f"{sizes['local']} bytes of local memory a thread; {512 << 10} are allowed")
    parameters = _parameters(kernel.entry, args, memory)
    count = int(np.prod(grid, dtype=np.int64)) * threads
    return Context(
        grid, block, memory, parameters, symbols, shared, kernel.shared_unit, sizes["local"], step_limit,
        LaunchCounters(count), {},
    )  # fmt: skip


def _initial(variable: Variable) -> Array:
    data = np.zeros(variable.size or 0, np.uint8)
    if len(variable.initial) > data.size:
        raise LaunchError(f"{variable.name}: more initial values than its {data.size} bytes hold")
    data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
    return data


def _parameters(entry: Entry, args: Sequence[Argument], memory: GlobalMemory) -> dict[str, bytes]:
    """The bytes of each argument by the name of its parameter; arrays are mapped into memory."""
    if len(args) != len(entry.parameters):
        raise LaunchError(f"{entry.name} takes {len(entry.parameters)} arguments, not {len(args)}")
    contents: dict[str, bytes] = {}
    mapped: dict[tuple[int, int], int] = {}
    for place, (parameter, argument) in enumerate(zip(entry.parameters, args, strict=True)):
        if isinstance(argument, np.ndarray):
            key = (argument.ctypes.data, argument.nbytes)
            if key not in mapped:  # one array passed twice has one address
                mapped[key] = memory.add(argument, f"argument {place}")
            content = mapped[key].to_bytes(8, "little")
        elif isinstance(argument, np.generic):
            content = argument.tobytes()
        else:
            raise LaunchError(f"argument {place}: an array or a NumPy scalar, not {type(argument).__name__}")
        if len(content) != parameter.size:
            raise LaunchError(f"argument {place}: {len(content)} bytes, {entry.name} takes {parameter.size}")
        contents[parameter.name] = content
    return contents


def _chunks(kernel: Kernel, context: Context) -> Iterator[tuple[int, int]]:
    """Ranges of blocks: as many as fit the limits on threads and bytes."""
    a_block = context.threads * (8 * kernel.registers + context.local_size) + 32 * context.shared_size
    size = max(1, min(CHUNK_THREADS // context.threads, CHUNK_BYTES // max(a_block, 1)))
    blocks = int(np.prod(context.grid, dtype=np.int64))
    for first in range(0, blocks, size):
        yield first, min(first + size, blocks)
