"""Launch a kernel: lay out its memory, and run its grid chunk by chunk."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from ..counting.counters import LaunchCounters
from ..isa.operands import STACK
from ..isa.spaces import window_base
from ..lanes.warps import Array
from ..machine.argument_layout import ArgumentLayout, BoundDescriptor, KernelArgument
from ..machine.chunk import GRID_WORKSPACE, Chunk, Context, split_index
from ..machine.global_memory import FIRST_CONSTANT, FIRST_PARAMETER, ArrayMemory
from ..machine.global_races import ANYTHING
from ..machine.progress import Estimate
from ..ptx.program import Entry, Variable
from ..source.names import demangled, source_name
from ..util import host_memory
from ..util.architectures import MAX_BLOCK, MAX_CLUSTER, MAX_GRID, MAX_SHARED, MAX_THREADS
from ..util.errors import Index3, LaunchError
from ..util.findings import RACES, UNWRITTEN
from .executable import Executable, lay_out_variables, load_executable
from .launchable import require_static_shared
from .merging import Merged
from .schedule import Schedule

#: Threads that run together: enough to make NumPy's cost a call small, few enough for registers to stay in cache.
CHUNK_THREADS = 1 << 17
#: Bytes that the registers and the shared memory of a chunk may take.
CHUNK_BYTES = 256 << 20
#: Instructions that a chunk may execute: an endless loop ends in a minute, a long kernel does not.
STEP_LIMIT = 2_000_000
#: Bytes of a thread's stack, if the kernel asks for any.
STACK_BYTES = 16 << 10
#: The address of the first function.
FIRST_FUNCTION = 1 << 54
#: Threads of a cooperative launch, which all run at once: those of an H200.
MAX_RESIDENT = 132 * 2048


def run(
    ptx_text: str,
    entry: str,
    grid: Index3,
    block: Index3,
    args: Sequence[KernelArgument],
    *,
    dynamic_shared: int = 0,
    step_limit: int = STEP_LIMIT,
    races: str = RACES[0],
    unwritten: str = UNWRITTEN[0],
    variables: Mapping[str, KernelArgument] | None = None,
    distinct: bool = False,
    cluster: Index3 | None = None,
    time_limit: float | None = None,
    names: Sequence[str] = (),
) -> LaunchCounters:
    """Execute a kernel of a PTX module for a whole grid, and count its memory transactions.

    As `ptxcount.count`, which says what is taken, given and raised: with a kernel's name in the PTX, and three numbers
    for the grid and for the block. Arrays are aligned to 256 bytes as far as the kernel can see. With ``distinct`` the
    different sectors that it reads and writes are counted, and races in global memory are looked for, which takes a
    little time. ``names`` are what errors call the arguments.
    """
    kernel = load_executable(ptx_text, entry)
    for option, policy, allowed in (("races", races, RACES), ("unwritten", unwritten, UNWRITTEN)):
        if policy not in allowed:
            raise LaunchError(f"{option} {policy!r}: one of {', '.join(allowed)} is allowed")
    policies = races, unwritten
    context = _make_context(
        kernel, grid, block, args, dynamic_shared, step_limit, policies, variables or {}, distinct, cluster, names
    )
    if time_limit is not None:
        context.deadline, context.progress.limit = time.monotonic() + time_limit, float("inf")
    with np.errstate(all="ignore"):
        context.merged = {group.instructions[0]: Merged(group) for group in kernel.neighbours}
        _run_chunks(kernel, context)
    _count_merged(kernel, context)
    counters = context.counters
    counters.accesses = sorted(context.accesses.values(), key=lambda access: access.source.ptx_line)
    counters.arrays = [*context.memory.arrays(), *context.constants.arrays(), *_iter_shared_arrays(kernel, context)]
    if distinct:
        counters.distinct_sectors = context.memory.distinct_sectors()
        counters.fetched_sectors = context.memory.fetched_sectors()
    counters.findings = sorted(context.findings.values(), key=lambda finding: finding.source.ptx_line)
    return counters


def _iter_shared_arrays(kernel: Executable, context: Context) -> Iterator[tuple[int, int, str]]:
    """Yield address, size and name of each shared variable; dynamic memory reaches to the end."""
    for shared in kernel.variables:
        if shared.space == "shared" and shared.name in context.symbols:
            first = context.symbols[shared.name]
            yield first, context.shared_size - first if shared.size is None else shared.size, shared.name


def _run_chunks(kernel: Executable, context: Context) -> None:
    """Run chunk by chunk; those that wait for blocks of others, in turns with them."""
    schedules: deque[Schedule] = deque()
    chunks, stuck, begun = _iter_chunks(kernel, context), 0, 0
    estimate = Estimate(prod(context.grid))
    while True:
        if stuck == len(schedules):
            estimate.report_blocks(begun)
            blocks = next(chunks, None)
            if blocks is None:
                if schedules:
                    schedules[0].stop()
                return
            begun += len(blocks)
            for access in context.accesses.values():
                access.whole = True  # other blocks are no further executions
            schedules.append(Schedule(Chunk(context, blocks), kernel.code, kernel.flow))
        schedule = schedules.pop()
        parts = schedule.run()
        if parts == [schedule]:
            schedules.appendleft(schedule)
            stuck = 1 if schedule.moved else stuck + 1
        else:
            schedules += parts
            stuck = 0


def _count_merged(kernel: Executable, context: Context) -> None:
    """Count requests and wavefronts as if machine code merged neighbours."""
    single = {index for group in kernel.neighbours for index in group.instructions}
    unmerged = [
        access for (index, space, _), access in context.accesses.items() if index not in single and space == "shared"
    ]
    for kind in sorted({merged.kind for merged in context.merged.values()}):
        accesses = [candidate for candidate in (*context.merged.values(), *unmerged) if candidate.kind == kind]
        context.counters.merged[kind] = (
            sum(access.requests for access in accesses),
            sum(access.wavefronts for access in accesses),
        )


def _make_context(
    kernel: Executable,
    grid: Index3,
    block: Index3,
    args: Sequence[KernelArgument],
    dynamic_shared: int,
    step_limit: int,
    policies: tuple[str, str],
    given_variables: Mapping[str, KernelArgument],
    distinct: bool,
    given_cluster: Index3 | None,
    names: Sequence[str],
) -> Context:
    threads = prod(block)
    for dimension, extent, limit in (("grid", grid, MAX_GRID), ("block", block, MAX_BLOCK)):
        if len(extent) != 3 or not all(1 <= n <= most for n, most in zip(extent, limit, strict=True)):
            raise LaunchError(f"{dimension} {extent}: three numbers from 1 to {limit} are allowed")
    if threads > MAX_THREADS:
        raise LaunchError(f"block {block}: {threads} threads, {MAX_THREADS} are allowed")
    most, exact = kernel.entry.most or threads, kernel.entry.exact or block
    if threads > most or block != exact:
        wanted = f"at most {most} threads" if threads > most else f"{exact}"
        raise LaunchError(
            f"block {block}: the kernel was compiled for {wanted} (__launch_bounds__, .maxntid, .reqntid)"
        )
    cluster = given_cluster or kernel.entry.cluster
    if any(extent % n for extent, n in zip(grid, cluster, strict=True)) or not 1 <= prod(cluster) <= MAX_CLUSTER:
        raise LaunchError(f"cluster {cluster}: the grid {grid} in parts of up to {MAX_CLUSTER} blocks is allowed")
    memory, constants, given = ArrayMemory(distinct=distinct), ArrayMemory(FIRST_CONSTANT), ArrayMemory(FIRST_PARAMETER)
    bound: dict[int, BoundDescriptor] = {}
    layout = ArgumentLayout(memory, bound)
    symbols: dict[str, int] = {}
    large = sum(v.size or 0 for v in kernel.variables if v.space in ("global", "const"))
    if large:
        host_memory.require(large)
    refused = {variable.name: variable.problem for variable in kernel.variables if variable.problem}
    values = _match_variables(kernel.variables, given_variables)
    symbols_of_code = {name: FIRST_FUNCTION + 16 * place for place, name in enumerate(kernel.functions)}
    usable = [variable for variable in kernel.variables if not variable.problem]
    sizes: dict[str, int] = {}
    for space, start in (("shared", kernel.reserved), ("local", 0)):
        places, sizes[space] = lay_out_variables((candidate for candidate in usable if candidate.space == space), start)
        symbols |= places
    symbols |= symbols_of_code
    pointing: list[tuple[Variable, Array]] = []
    for variable in usable:
        if variable.space not in sizes:
            arrays, value = constants if variable.space == "const" else memory, values.get(variable.name)
            unset = value is None and variable.space == "const" and not variable.initial
            content = _initial_content(variable) if value is None else _convert_variable(variable, value, layout)
            symbols[variable.name] = arrays.add(content, variable.name, unset=unset)
            if variable.addresses and value is None:
                pointing.append((variable, content))
    for variable, content in pointing:
        _write_addresses(
            variable, content, {v.name: window_base(v.space) + symbols.get(v.name, 0) for v in usable} | symbols_of_code
        )
    if kernel.stack:
        symbols[STACK.name] = -(-sizes["local"] // 16) * 16
        sizes["local"] = symbols[STACK.name] + STACK_BYTES
    shared = sizes["shared"] + dynamic_shared
    own_bytes = shared - kernel.reserved
    require_static_shared(sizes["shared"] - kernel.reserved)
    if dynamic_shared < 0 or own_bytes > MAX_SHARED:
        raise LaunchError(f"{own_bytes} bytes of shared memory a block; from 0 to {MAX_SHARED} are allowed")
    if sizes["local"] > 512 << 10:
        raise LaunchError(f"{sizes['local']} bytes of local memory a thread; {512 << 10} are allowed")
    parameters = _pack_parameters(kernel.entry, args, layout, names)
    for name, content_bytes in parameters.items():
        symbols[name] = given.add(np.frombuffer(content_bytes, np.uint8), name)
    count = prod(grid) * threads
    whole_grid = kernel.whole_grid and count <= MAX_RESIDENT
    if whole_grid:
        symbols[GRID_WORKSPACE] = memory.add(np.zeros(256, np.uint8), GRID_WORKSPACE)
    through = [_resolve_arrays(names, memory, parameters) for names in kernel.through]
    watching = distinct and policies[0] != "off" and memory.watch(*through, strict=policies[0] == "strict")
    dynamic = any(variable.size is None for variable in usable)
    return Context(
        grid, block, memory, constants, given, symbols, refused, shared, kernel.shared_unit, sizes["local"],
        step_limit, *policies, LaunchCounters(count), bound, cluster, whole_grid or prod(cluster) > 1,
        reserved=kernel.reserved, dynamic_size=dynamic_shared, watches_races=watching,
        ordered_lanes=kernel.ordered_lanes, polls=kernel.polls,
        dynamic=f", {dynamic_shared} of them dynamic (--dynamic-shared)" if dynamic else "",
    )  # fmt: skip


def _resolve_arrays(names: set[str], memory: ArrayMemory, parameters: Mapping[str, bytes]) -> set[str] | None:
    """Return the names of the arrays behind some parameters and variables; None for any."""
    if ANYTHING in names:
        return None
    addresses = {int(word) for name in names & parameters.keys()
                 for word in np.frombuffer(parameters[name][: len(parameters[name]) // 8 * 8], np.int64)}  # fmt: skip
    array_names = {
        name for base, size, name in memory.arrays() if any(base <= address < base + size for address in addresses)
    }
    return array_names | names


def _match_variables(
    variables: Sequence[Variable], given_values: Mapping[str, KernelArgument]
) -> dict[str, KernelArgument]:
    """Match given values to variables of the module, by their names in the PTX."""
    contents: dict[str, KernelArgument] = {}
    names = [variable.name for variable in variables if variable.space in ("const", "global")]
    for name, value in given_values.items():
        matches = [
            candidate for candidate in names if candidate == name or f"::{source_name(candidate)}".endswith(f"::{name}")
        ]
        if len(matches) != 1:
            raise LaunchError(f"variable {name!r}: one of {', '.join(names) or 'none'} that the kernel uses is needed")
        contents[matches[0]] = value
    return contents


def _convert_variable(variable: Variable, value: KernelArgument, layout: ArgumentLayout) -> Array:
    """Convert a value to the memory of a variable; an array is kept, so that the kernel's stores show in it."""
    if not isinstance(value, np.ndarray):
        value = np.frombuffer(bytearray(layout.encode_argument(value, f"variable {variable.name}")), np.uint8)
    if value.nbytes != variable.size:
        raise LaunchError(f"variable {variable.name}: {value.nbytes} bytes; a value of {variable.size} bytes is needed")
    array = np.ascontiguousarray(value)
    if variable.space == "const":
        array = array.copy()
        array.flags.writeable = False
    return array


def _initial_content(variable: Variable) -> Array:
    data = np.zeros(variable.size or 0, np.uint8)
    data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
    data.flags.writeable = variable.space != "const"
    return data


def _write_addresses(variable: Variable, content: Array, generic: Mapping[str, int]) -> None:
    """Put the generic addresses into a variable that it holds at first; of what there is not, zero."""
    writeable, content.flags.writeable = content.flags.writeable, True
    for place, name, offset in variable.addresses:
        address_bytes = (generic.get(name, -offset) + offset).to_bytes(8, "little")
        content[place : place + 8] = np.frombuffer(address_bytes, np.uint8)
    content.flags.writeable = writeable


def _pack_parameters(
    entry: Entry, args: Sequence[KernelArgument], layout: ArgumentLayout, names: Sequence[str]
) -> dict[str, bytes]:
    """Return the bytes of each argument by the name of its parameter."""
    if len(args) != len(entry.parameters):
        raise LaunchError(f"{demangled(entry.name)} takes {len(entry.parameters)} arguments, not {len(args)}")
    contents: dict[str, bytes] = {}
    for place, (parameter, argument) in enumerate(zip(entry.parameters, args, strict=True)):
        name = names[place] if names else f"argument {place}"
        content = layout.encode_argument(argument, name)
        if len(content) != parameter.size:
            raise LaunchError(f"{name}: {len(content)} bytes, {entry.name} takes {parameter.size}")
        contents[parameter.name] = content
    return contents


def _iter_chunks(kernel: Executable, context: Context) -> Iterator[Array]:
    """Blocks by their numbers: as many as fit the limits on threads and bytes, clusters in one piece, or all."""
    block_bytes = context.threads * (8 * kernel.registers + context.local_size) + 32 * context.shared_size
    size = max(1, min(CHUNK_THREADS // context.threads, CHUNK_BYTES // max(block_bytes, 1)))
    blocks, cluster = prod(context.grid), prod(context.cluster)
    size = blocks if GRID_WORKSPACE in context.symbols else -(-size // cluster) * cluster
    for first in range(0, blocks, size):
        numbers = np.arange(first, min(first + size, blocks))
        yield numbers if cluster == 1 else _order_by_cluster(numbers, context.grid, context.cluster)


def _order_by_cluster(numbers: Array, grid: Index3, cluster: Index3) -> Array:
    """Reorder block numbers so that the blocks of a cluster follow each other."""
    within = split_index(numbers % prod(cluster), cluster)
    clusters = split_index(numbers // prod(cluster), (grid[0] // cluster[0], grid[1] // cluster[1], 1))
    x, y, z = (w * c + i for w, c, i in zip(clusters, cluster, within, strict=True))
    return np.asarray(x + grid[0] * (y + grid[1] * z))
