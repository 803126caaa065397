"""How many blocks of a kernel fit on a multiprocessor: what registers and shared memory cost without a time to tell.

The rules are those of NVIDIA's occupancy calculator, `cuda_occupancy.h` of the CUDA Toolkit 13.0; a test compares the
two. The table is that of the CUDA C++ Programming Guide 13.0, "Compute Capabilities", technical specifications.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelwatch.errors import ERRORS
from kernelwatch.suite import registry

#: The threads of a block and its bytes of dynamic shared memory, in base and in head; None where they are not known.
Launched = tuple[tuple[int, int] | None, tuple[int, int] | None]

KIB = 1024

WARP = 32
REGISTERS = 64 * KIB  # of a multiprocessor, on all of these architectures

#: A multiprocessor's parts, which share its registers evenly; a warp stays in one.
_PARTS = 4

#: Registers of a warp, and bytes of shared memory of a block, are allocated in multiples of these.
_REGISTER_UNIT, _SHARED_UNIT = 256, 128

#: Bytes of shared memory that the driver takes of each block.
_RESERVED = KIB


class Multiprocessor(NamedTuple):
    """What a multiprocessor holds at most: warps, blocks, bytes of shared memory."""

    warps: int
    blocks: int
    shared: int


#: By compute capability, as nvcc names it.
MULTIPROCESSORS = {
    "sm_80": Multiprocessor(64, 32, 164 * KIB),
    "sm_86": Multiprocessor(48, 16, 100 * KIB),
    "sm_89": Multiprocessor(48, 24, 100 * KIB),
    "sm_90": Multiprocessor(64, 32, 228 * KIB),
    "sm_100": Multiprocessor(64, 32, 228 * KIB),
    "sm_120": Multiprocessor(48, 24, 100 * KIB),
}


def blocks(arch: str, threads: int, registers: int, shared: int) -> int:
    """Return how many blocks fit on a multiprocessor of MULTIPROCESSORS; 0 if the kernel cannot be launched so.

    `registers` are those of a thread, `shared` a block's bytes of shared memory, static and dynamic together.
    """
    holds = MULTIPROCESSORS[arch]
    warps = -(-threads // WARP)
    warps_by_registers = _PARTS * (REGISTERS // _PARTS // max(_rounded(registers * WARP, _REGISTER_UNIT), 1))
    by_shared = holds.shared // _rounded(shared + _RESERVED, _SHARED_UNIT)
    return min(holds.blocks, holds.warps // warps, warps_by_registers // warps, by_shared)


def launched(kernel: str, dtype: str) -> tuple[int, int] | None:
    """Return a block's threads and its bytes of dynamic shared memory, as this checkout launches it, if it does."""
    try:
        return registry.find_declared_kernel(kernel).find_fixed_block(dtype)
    except ERRORS:
        return None


def _rounded(count: int, unit: int) -> int:
    return -(-count // unit) * unit
