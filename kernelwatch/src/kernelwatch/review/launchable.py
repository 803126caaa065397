"""The number of blocks that fit on a multiprocessor, and kernels that can be launched at only one of two commits.

The rules are those of NVIDIA's occupancy calculator, `cuda_occupancy.h` of the CUDA Toolkit 13.0; a test compares the
results.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from kernelwatch.review.rows import Row, UnpairedConfiguration
from kernelwatch.review.verdict import Verdict
from ptxcount.util.architectures import REGISTERS, WARP, Multiprocessor, find_multiprocessor, fit_warps, round_up

#: Resources that limit the blocks on a multiprocessor, named as in `Row.metric`.
THREAD_REGISTERS, BLOCK_SHARED = "registers", "shared bytes"

#: (threads of a block, its bytes of dynamic shared memory) in base and in head; None if unknown.
LaunchedBlocks = tuple[tuple[int, int] | None, tuple[int, int] | None]


def count_blocks(limits: Multiprocessor, threads: int, registers: int, shared: int) -> int:
    """Return the number of blocks that fit on a multiprocessor; 0 if registers or shared memory do not suffice for one.

    `threads` are at most the maximum of a block. `registers` are those of a thread. `shared` are a block's bytes of
    static and dynamic shared memory.
    """
    warps = -(-threads // WARP)
    by_shared = limits.shared // max(round_up(shared + limits.reserved, limits.shared_unit), 1)
    return min(limits.blocks, limits.warps // warps, fit_warps(registers) // warps, by_shared)


def find_unlaunchable(
    rows: Iterable[Row], find_recorded: Callable[[Row], LaunchedBlocks]
) -> Iterator[tuple[Verdict, UnpairedConfiguration]]:
    """Yield each kernel that can be launched at only one commit: BROKEN if this is base, REPAIRED if it is head.

    `find_recorded` returns the blocks that runs of both commits launched. If base has no recorded block, that of head
    is used. Kernels without a recorded block in head are left out, and so are unknown architectures.
    """
    kernels: defaultdict[tuple[object, str | None], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row.metric in (THREAD_REGISTERS, BLOCK_SHARED):
            kernels[row.code_key, row.arch][row.metric] = row
    for (_, arch), resources in kernels.items():
        first = next(iter(resources.values()))
        base, head = find_recorded(first)
        limits = find_multiprocessor(arch or "")
        if head is None or limits is None:
            continue
        base_problem = _find_problem(limits, resources, "base", base or head)
        head_problem = _find_problem(limits, resources, "head", head)
        # A kernel that cannot be launched at either commit never ran on this architecture.
        if bool(base_problem) != bool(head_problem):
            verdict = Verdict.BROKEN if head_problem else Verdict.REPAIRED
            reason = f"cannot be launched on {arch}: {base_problem or head_problem}"
            yield verdict, UnpairedConfiguration(first.name, first.benchmark, reason, first.kernel, first.params)


def read_resources(resources: Mapping[str, Row], side: str) -> tuple[int, int]:
    """Return the registers of a thread and the static shared bytes of a block at a commit; 0 for a missing row."""
    values = {name: int(getattr(row, side)) for name, row in resources.items()}
    return values.get(THREAD_REGISTERS, 0), values.get(BLOCK_SHARED, 0)


def _find_problem(limits: Multiprocessor, resources: dict[str, Row], side: str, block: tuple[int, int]) -> str:
    (threads, dynamic), (registers, shared) = block, read_resources(resources, side)
    if not count_blocks(limits, threads, registers, 0):
        return (
            f"{threads} threads need {registers} registers each, but a multiprocessor has only {REGISTERS}; "
            f"use fewer threads or __launch_bounds__({threads})"
        )
    if not count_blocks(limits, threads, registers, shared + dynamic):
        return f"a block needs {shared + dynamic} bytes of shared memory; at most {limits.shared_of_block} are allowed"
    return ""
