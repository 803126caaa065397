"""Limits of launches and of GPUs, by compute capability.

The table is that of the CUDA C++ Programming Guide 13.0, "Compute Capabilities", technical specifications. Rows that it
joins, and bytes that the driver takes, are those of CCCL, `cuda/__device/arch_traits.h`. The rules of allocation are
those of NVIDIA's occupancy calculator, `cuda_occupancy.h` of the CUDA Toolkit 13.0.
"""

from __future__ import annotations

from typing import NamedTuple

KIB = 1024

WARP = 32

#: Architecture of the GPU whose counters were read, an H200.
MEASURED = "sm_90"

#: Blocks of a grid, and threads of a block, along x, y and z; threads of a block, and blocks of a cluster, in all.
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_CLUSTER = 16

#: Bytes of static shared memory of a block; of dynamic, too, where the function's attribute does not ask for more.
STATIC_SHARED = 48 * KIB

#: Registers of a multiprocessor, which are also those that a block may have, on all of these architectures.
REGISTERS = 64 * KIB

#: A multiprocessor's parts, which share its registers evenly; a warp stays in one.
PARTS = 4

#: Registers of a warp are allocated in multiples of these.
REGISTER_UNIT = 256


class Multiprocessor(NamedTuple):
    """Resources of a multiprocessor: warps, blocks, bytes of shared memory."""

    warps: int
    blocks: int
    shared: int
    #: Bytes of shared memory that the driver takes of each block, and the unit of a block's allocation.
    reserved: int = KIB
    shared_unit: int = 128

    @property
    def shared_of_block(self) -> int:
        """Bytes of shared memory, static and dynamic, that a block may have."""
        return self.shared - self.reserved

    def fit_blocks(self, threads: int, shared: int) -> int:
        """Return how many blocks of these threads and bytes of shared memory fit, if their registers do."""
        block_bytes = round_up(shared + self.reserved, self.shared_unit)
        return min(self.blocks, self.warps // -(-threads // WARP), self.shared // block_bytes)


#: Key: the compute capability as nvcc names it.
MULTIPROCESSORS = {
    "sm_75": Multiprocessor(32, 16, 64 * KIB, 0, 256),
    "sm_80": Multiprocessor(64, 32, 164 * KIB),
    "sm_86": Multiprocessor(48, 16, 100 * KIB),
    "sm_87": Multiprocessor(48, 16, 164 * KIB),
    "sm_88": Multiprocessor(48, 16, 100 * KIB),
    "sm_89": Multiprocessor(48, 24, 100 * KIB),
    "sm_90": Multiprocessor(64, 32, 228 * KIB),
    "sm_100": Multiprocessor(64, 32, 228 * KIB),
    "sm_103": Multiprocessor(64, 32, 228 * KIB),
    "sm_110": Multiprocessor(48, 24, 228 * KIB),
    "sm_120": Multiprocessor(48, 24, 100 * KIB),
    "sm_121": Multiprocessor(48, 24, 100 * KIB),
}

#: Bytes of shared memory that a block may have on some architecture.
MAX_SHARED = max(each.shared_of_block for each in MULTIPROCESSORS.values())


def find_multiprocessor(arch: str) -> Multiprocessor | None:
    """Find the resources of an architecture such as ``sm_90a``; None if they are not known."""
    return MULTIPROCESSORS.get(arch.rstrip("af"))


def round_up(count: int, unit: int) -> int:
    """Round up to a multiple of a unit."""
    return -(-count // unit) * unit


def fit_warps(registers: int) -> int:
    """Return how many warps a multiprocessor's registers suffice for, by the registers of a thread."""
    return PARTS * (REGISTERS // PARTS // max(round_up(registers * WARP, REGISTER_UNIT), 1))


def fit_registers(threads: int) -> int:
    """Return how many registers a thread may have in a block of so many threads."""
    warps_of_part = round_up(-(-threads // WARP), PARTS) // PARTS
    return min(REGISTERS // PARTS // warps_of_part // REGISTER_UNIT * REGISTER_UNIT // WARP, 255)
