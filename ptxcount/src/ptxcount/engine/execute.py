"""Launch a kernel: lay out its memory, and run its grid chunk by chunk."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from ..counting.counters import LaunchCounters
from ..lanes.warps import Array
from ..machine.argument_layout import KernelArgument
from ..machine.chunk import Chunk
from ..machine.context import Context, split_index
from ..machine.launch_progress import Estimate
from ..machine.special_registers import GRID_WORKSPACE
from ..util.errors import Index3
from ..util.findings import RACES, UNWRITTEN
from .executable import Executable, load_executable
from .launch_context import LaunchOptions, make_context
from .merging import MergedCounter
from .schedule import Schedule

#: Threads that run together: enough to make NumPy's cost a call small, few enough for registers to stay in cache.
CHUNK_THREADS = 1 << 17
#: Bytes that the registers and the shared memory of a chunk may take.
CHUNK_BYTES = 256 << 20
#: Instructions that a chunk may execute: an endless loop ends in a minute, a long kernel does not.
STEP_LIMIT = 2_000_000

# glibc hands memory back to the system if more than twice the largest block that was freed lies unused. New pages
# would cost a third of all time. So an array that nobody touches is freed here: blocks of up to 32 MiB stay then.
np.empty((32 << 20) - (64 << 10), np.uint8)


def execute_kernel(  # noqa: PLR0913 -- options of a launch, by keyword
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
    options = LaunchOptions(
        grid=grid,
        block=block,
        arguments=args,
        dynamic_shared=dynamic_shared,
        step_limit=step_limit,
        races=races,
        unwritten=unwritten,
        variables=variables or {},
        distinct=distinct,
        cluster=cluster,
        names=names,
    )
    context = make_context(kernel, options)
    if time_limit is not None:
        context.deadline, context.progress.limit = time.monotonic() + time_limit, float("inf")
    with np.errstate(all="ignore"):
        context.merged = {group.instructions[0]: MergedCounter(group) for group in kernel.neighbours}
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
    chunks, stuck, started_blocks = _iter_chunks(kernel, context), 0, 0
    estimate = Estimate(prod(context.grid))
    while True:
        if stuck == len(schedules):
            estimate.report_blocks(started_blocks)
            blocks = next(chunks, None)
            if blocks is None:
                if schedules:
                    schedules[0].report_stall()
                return
            started_blocks += len(blocks)
            for access in context.accesses.values():
                access.whole = True  # other blocks are no further executions
            schedules.append(Schedule(Chunk(context, blocks), kernel.code, kernel.flow))
        schedule = schedules.pop()
        parts = schedule.run_turn()
        if parts == [schedule]:
            schedules.appendleft(schedule)
            stuck = 1 if schedule.has_progress else stuck + 1
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
