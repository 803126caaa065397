"""How many blocks of a kernel fit on a multiprocessor: what registers and shared memory cost without a time to tell.

The rules are those of NVIDIA's occupancy calculator, `cuda_occupancy.h` of the CUDA Toolkit 13.0; a test compares the
two.
"""

from __future__ import annotations

from kernelwatch.errors import ERRORS
from kernelwatch.suite import registry
from ptxcount.util.architectures import MULTIPROCESSORS, RESERVED_SHARED, SHARED_UNIT, WARP, fit_warps, round_up

#: The threads of a block and its bytes of dynamic shared memory, in base and in head; None where they are not known.
Launched = tuple[tuple[int, int] | None, tuple[int, int] | None]


def blocks(arch: str, threads: int, registers: int, shared: int) -> int:
    """Return how many blocks fit on a multiprocessor of MULTIPROCESSORS; 0 if the kernel cannot be launched so.

    `registers` are those of a thread, `shared` a block's bytes of shared memory, static and dynamic together.
    """
    holds = MULTIPROCESSORS[arch]
    warps = -(-threads // WARP)
    by_shared = holds.shared // round_up(shared + RESERVED_SHARED, SHARED_UNIT)
    return min(holds.blocks, holds.warps // warps, fit_warps(registers) // warps, by_shared)


def launched(kernel: str, dtype: str) -> tuple[int, int] | None:
    """Return a block's threads and its bytes of dynamic shared memory, as this checkout launches it, if it does."""
    try:
        return registry.find_declared_kernel(kernel).find_fixed_block(dtype)
    except ERRORS:
        return None
