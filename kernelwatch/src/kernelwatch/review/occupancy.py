"""Blocks of a kernel that fit on a multiprocessor: the cost of registers and shared memory.

The rules are those of NVIDIA's occupancy calculator, `cuda_occupancy.h` of the CUDA Toolkit 13.0; a test compares the
two.
"""

from __future__ import annotations

from ptxcount.util.architectures import MULTIPROCESSORS, WARP, fit_warps, round_up

#: The threads of a block and its bytes of dynamic shared memory, in base and in head; None where they are not known.
LaunchedBlocks = tuple[tuple[int, int] | None, tuple[int, int] | None]


def count_blocks(arch: str, threads: int, registers: int, shared: int) -> int:
    """Return how many blocks fit on a multiprocessor of MULTIPROCESSORS; 0 if the kernel cannot be launched so.

    `registers` are those of a thread, `shared` a block's bytes of shared memory, static and dynamic together.
    """
    limits = MULTIPROCESSORS[arch]
    warps = -(-threads // WARP)
    by_shared = limits.shared // max(round_up(shared + limits.reserved, limits.shared_unit), 1)
    return min(limits.blocks, limits.warps // warps, fit_warps(registers) // warps, by_shared)
