"""Blocks of a kernel that fit on a multiprocessor: the cost of registers and shared memory.

The rules are those of NVIDIA's occupancy calculator, `cuda_occupancy.h` of the CUDA Toolkit 13.0; a test compares the
results.
"""

from ptxcount.util.architectures import MULTIPROCESSORS, WARP, fit_warps, round_up

#: The threads of a block and its bytes of dynamic shared memory, in base and in head; None if unknown.
LaunchedBlocks = tuple[tuple[int, int] | None, tuple[int, int] | None]


def count_blocks(arch: str, threads: int, registers: int, shared: int) -> int:
    """Return the number of blocks that fit on a multiprocessor of MULTIPROCESSORS; 0 if a launch fails.

    `registers` are those of a thread. `shared` are a block's bytes of static and dynamic shared memory.
    """
    limits = MULTIPROCESSORS[arch]
    warps = -(-threads // WARP)
    by_shared = limits.shared // max(round_up(shared + limits.reserved, limits.shared_unit), 1)
    return min(limits.blocks, limits.warps // warps, fit_warps(registers) // warps, by_shared)
