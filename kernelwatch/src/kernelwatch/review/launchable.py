"""The number of blocks that fit on a multiprocessor, and kernels that can be launched at only one of two commits.

The rules are those of NVIDIA's occupancy calculator, `cuda_occupancy.h` of the CUDA Toolkit 13.0; a test compares the
results.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from kernelwatch.review.rows import Row, UnpairedConfiguration
from kernelwatch.review.verdict import Verdict
from ptxcount.util.architectures import MULTIPROCESSORS, REGISTERS, WARP, fit_warps, round_up

#: Resources of a block, as `Row.metric` has them.
_REGISTERS, _SHARED = "registers", "shared bytes"

#: (threads of a block, its bytes of dynamic shared memory) in base and in head; None if unknown.
LaunchedBlocks = tuple[tuple[int, int] | None, tuple[int, int] | None]


def count_blocks(arch: str, threads: int, registers: int, shared: int) -> int:
    """Return the number of blocks that fit on a multiprocessor; 0 if registers or shared memory do not suffice for one.

    `arch` is a key of MULTIPROCESSORS, `threads` at most the maximum of a block. `registers` are those of a thread.
    `shared` are a block's bytes of static and dynamic shared memory.
    """
    limits = MULTIPROCESSORS[arch]
    warps = -(-threads // WARP)
    by_shared = limits.shared // max(round_up(shared + limits.reserved, limits.shared_unit), 1)
    return min(limits.blocks, limits.warps // warps, fit_warps(registers) // warps, by_shared)


def find_unlaunchable(
    rows: Iterable[Row], find_recorded: Callable[[Row], LaunchedBlocks]
) -> Iterator[tuple[Verdict, UnpairedConfiguration]]:
    """Yield each kernel that can be launched at only one commit: with BROKEN if at base, with REPAIRED if at head.

    `find_recorded` returns the blocks that runs of both commits launched. A kernel that cannot be launched at either
    commit never ran on this architecture, and is left out. So are architectures that MULTIPROCESSORS lacks, and kernels
    without a recorded block in head. Without one in base, that of head is used.
    """
    kernels: defaultdict[tuple[object, str], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row.metric in (_REGISTERS, _SHARED) and row.arch in MULTIPROCESSORS:
            kernels[row.code_key, row.arch][row.metric] = row
    for (_, arch), resources in kernels.items():
        first = next(iter(resources.values()))
        base, head = find_recorded(first)
        if head is None:
            continue
        problems = [
            _find_problem(arch, resources, side, block or head) for side, block in (("base", base), ("head", head))
        ]
        if bool(problems[0]) != bool(problems[1]):
            verdict = Verdict.BROKEN if problems[1] else Verdict.REPAIRED
            reason = problems[0] or problems[1]
            yield verdict, UnpairedConfiguration(first.name, first.benchmark, reason, first.kernel, first.params)


def _find_problem(arch: str, resources: dict[str, Row], side: str, block: tuple[int, int]) -> str:
    """Return why a block with a kernel's resources at a commit cannot be launched; empty if it can."""
    threads, dynamic = block
    registers, shared = (
        int(getattr(resources[name], side)) if name in resources else 0 for name in (_REGISTERS, _SHARED)
    )
    if not count_blocks(arch, threads, registers, 0):
        return (
            f"cannot be launched on {arch}: {threads} threads need {registers} registers each, a multiprocessor has "
            f"{REGISTERS}; use fewer threads or __launch_bounds__({threads})"
        )
    if not count_blocks(arch, threads, registers, shared + dynamic):
        allowed = MULTIPROCESSORS[arch].shared_of_block
        needed = f"a block needs {shared + dynamic} bytes of shared memory"
        return f"cannot be launched on {arch}: {needed}; at most {allowed} are allowed"
    return ""
