"""Launch a kernel: lay out its memory, and run its grid chunk by chunk."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..counting.access import Access, sum_accesses
from ..counting.counters import LaunchCounters
from ..lanes.warps import Array
from ..machine.argument_layout import KernelArgument
from ..machine.chunk import Chunk
from ..machine.context import Context
from ..machine.launch_progress import Estimate
from ..machine.special_registers import GRID_WORKSPACE, split_index
from ..util.errors import Index3
from .executable import Executable, load_executable
from .launch_context import LaunchOptions, make_context
from .merged_counter import MergedCounter
from .schedule import Schedule

#: Maximum threads of a chunk, the thread blocks that run together: enough to amortize the cost of NumPy calls, few
#: enough to keep registers in cache. A cooperative grid may have more, and a chunk is rounded up to whole clusters.
CHUNK_THREADS = 1 << 18
#: Maximum estimated bytes of the registers, and of the local and shared memory, of a chunk of several clusters.
CHUNK_BYTES = 256 << 20

# Freeing one large untouched array raises glibc's trim threshold. Otherwise memory is returned to the system and
# faulted in again, which costs a third of the time.
np.empty((32 << 20) - (64 << 10), np.uint8)


def execute_kernel(
    ptx_text: str,
    entry: str,
    grid: Index3,
    block: Index3,
    args: Sequence[KernelArgument],
    *,
    time_limit: float | None = None,
    **options: Any,
) -> LaunchCounters:
    """Execute a kernel of a PTX module for a whole grid, and count its memory transactions.

    ``entry`` is the kernel's mangled name. Arrays in ``args`` start at multiples of 256 bytes, views at their offset in
    the base array. ``options`` are further fields of `LaunchOptions`. See `ptxcount.count` for ``time_limit``, and for
    errors.
    """
    kernel = load_executable(ptx_text, entry)
    launch = LaunchOptions(grid, block, args, **options)
    context = make_context(kernel, launch)
    if time_limit is not None:
        context.time_limit, context.deadline = time_limit, time.monotonic() + time_limit
        context.progress.limit = float("inf")
    merged = [MergedCounter(group) for group in kernel.mergeable_groups]
    for counter in merged:
        for identity, record in counter.recorders.items():
            context.merged.setdefault(identity, []).append(record)
    with np.errstate(all="ignore"):
        _run_chunks(kernel, context)
    _count_merged(kernel, context, merged)
    return _collect_counters(kernel, context, distinct=launch.distinct)


def _collect_counters(kernel: Executable, context: Context, *, distinct: bool) -> LaunchCounters:
    counters = context.counters
    counters.accesses = sorted(_iter_instruction_accesses(context.accesses), key=lambda access: access.source.ptx_line)
    counters.arrays = [*context.memory.arrays(), *context.constants.arrays(), *_iter_shared_arrays(kernel, context)]
    if distinct:
        counters.distinct_sectors = context.memory.distinct_sectors()
        counters.fetched_sectors = context.memory.fetched_sectors()
    counters.findings = sorted(context.findings.values(), key=lambda finding: finding.source.ptx_line)
    return counters


def _iter_instruction_accesses(accesses: Mapping[tuple[int, str, str], Access]) -> Iterator[Access]:
    """Yield the accesses of each instruction of the PTX, of which calls and unrolled loops make copies."""
    copies = defaultdict[tuple[int, str, str], list[Access]](list)
    for (_, space, kind), access in accesses.items():
        copies[id(access.source), space, kind].append(access)
    for similar in copies.values():
        yield sum_accesses(similar) if len(similar) > 1 else similar[0]


def _iter_shared_arrays(kernel: Executable, context: Context) -> Iterator[tuple[int, int, str]]:
    """Yield the address, the bytes and the name of each variable in shared memory."""
    for shared in kernel.variables:
        if shared.space == "shared" and shared.name in context.symbols:
            first = context.symbols[shared.name]
            size = context.shared_size - first if shared.size is None else shared.size
            yield first, size, shared.name


def _run_chunks(kernel: Executable, context: Context) -> None:
    """Run the grid chunk by chunk. If all started chunks wait for other chunks, the next chunk starts."""
    waiting: deque[Schedule] = deque()
    started_blocks, estimate = 0, Estimate(prod(context.grid))
    for blocks in _iter_chunks(kernel, context):
        estimate.report_remaining_time(started_blocks)
        started_blocks += len(blocks)
        for access in context.accesses.values():
            access.has_enough_samples = True  # samples are of the first chunk only
        waiting.append(Schedule(Chunk(context, blocks), kernel.code, kernel.flow, kernel.order))
        _run_until_all_wait(waiting)
    states = set[tuple[str, ...]]()
    while waiting:  # as long as registers change: a loop may give up waiting
        state = tuple(schedule.hash_state() for schedule in waiting)
        if state in states:
            waiting[0].report_stall()
        states.add(state)
        _run_until_all_wait(waiting)


def _run_until_all_wait(schedules: deque[Schedule]) -> None:
    """Run schedules in turn, from the last, until each has ended, or has waited once since the last progress.

    The last schedule is new; the others wait already. A chunk that splits is replaced by its parts.
    """
    vain_turns = len(schedules) - 1  # schedules that have waited since the last progress
    while vain_turns < len(schedules):
        schedule = schedules.pop()
        parts = schedule.run_turn()
        if parts is None:  # it waits for other chunks
            schedules.appendleft(schedule)
            vain_turns = 1 if schedule.has_progress else vain_turns + 1
        else:  # it has split, or ended without parts
            schedules += parts
            vain_turns = 0


def _count_merged(kernel: Executable, context: Context, merged: Sequence[MergedCounter]) -> None:
    """Count the requests and wavefronts of shared memory after merging by ptxas, also of accesses without a group."""
    grouped = {identity for group in kernel.mergeable_groups for identity in group.instructions}
    counted: list[MergedCounter | Access] = [*merged]
    for (identity, space, _), access in context.accesses.items():
        if identity not in grouped and space == "shared":
            counted.append(access)
    for kind in sorted({counter.kind for counter in merged}):
        accesses = [access for access in counted if access.kind == kind]
        context.counters.merged[kind] = (
            sum(access.requests for access in accesses),
            sum(access.wavefronts for access in accesses),
        )


def _iter_chunks(kernel: Executable, context: Context) -> Iterator[Array]:
    """Yield the linear block indices of each chunk. Clusters, and the grid of a cooperative launch, stay whole."""
    # A byte of shared memory takes about 32 bytes, with its race check.
    block_bytes = context.threads * (8 * kernel.registers + context.local_size) + 32 * context.shared_size
    size = max(1, min(CHUNK_THREADS // context.threads, CHUNK_BYTES // max(block_bytes, 1)))
    blocks, cluster = prod(context.grid), prod(context.cluster)
    size = blocks if GRID_WORKSPACE in context.symbols else -(-size // cluster) * cluster
    for first in range(0, blocks, size):
        numbers = np.arange(first, min(first + size, blocks))
        yield numbers if cluster == 1 else _order_by_cluster(numbers, context.grid, context.cluster)


def _order_by_cluster(numbers: Array, grid: Index3, cluster: Index3) -> Array:
    """Return the linear index of each block from its number, which counts the blocks cluster by cluster."""
    within = split_index(numbers % prod(cluster), cluster)
    clusters = split_index(numbers // prod(cluster), (grid[0] // cluster[0], grid[1] // cluster[1], 1))
    x, y, z = (index * extent + offset for index, extent, offset in zip(clusters, cluster, within, strict=True))
    return np.asarray(x + grid[0] * (y + grid[1] * z))
