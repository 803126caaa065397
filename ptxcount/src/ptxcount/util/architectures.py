"""Limits of launches and of GPUs, by compute capability.

The limits are from the CUDA C++ Programming Guide 13.0, "Compute Capabilities", technical specifications. Where the
guide joins architectures, and for shared memory reserved by the driver, they are from CCCL,
`cuda/__device/arch_traits.h`. The allocation rules are from NVIDIA's occupancy calculator, `cuda_occupancy.h` of the
CUDA Toolkit 13.0.
"""

from typing import NamedTuple

KIB = 1024
WARP = 32
#: Architecture of the GPU whose counters were measured, an H200.
MEASURED = "sm_90"
#: Maximum blocks of a grid, and maximum threads of a block, along x, y and z.
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_BLOCK = (1024, 1024, 64)
#: Maximum threads of a block in total, and maximum blocks of a cluster.
MAX_THREADS = 1024
MAX_CLUSTER = 16
#: Maximum static shared memory of a block in bytes; also of static and dynamic together, unless the host raises
#: ``cudaFuncAttributeMaxDynamicSharedMemorySize``.
STATIC_SHARED = 48 * KIB
#: Registers of an SM, and the maximum of a block, on all of these architectures.
REGISTERS = 64 * KIB
#: Partitions of an SM. Each has a quarter of the registers, and a warp stays in one partition.
PARTITIONS = 4
#: Allocation unit of a warp's registers.
REGISTER_UNIT = 256


class Multiprocessor(NamedTuple):
    """Limits of an SM: resident warps, resident blocks, and bytes of shared memory."""

    warps: int
    blocks: int
    shared: int
    #: Bytes of shared memory per block that the driver reserves; and the unit in which it is allocated.
    reserved: int = KIB
    shared_unit: int = 128

    @property
    def shared_of_block(self) -> int:
        """Maximum shared memory of a block in bytes, static and dynamic together."""
        return self.shared - self.reserved

    def fit_blocks(self, threads: int, shared: int) -> int:
        """Return the maximum resident blocks of ``threads`` threads and ``shared`` bytes each; ignore registers."""
        block_bytes = round_up(shared + self.reserved, self.shared_unit)
        return min(self.blocks, self.warps // -(-threads // WARP), self.shared // max(block_bytes, 1))


#: Limits by the name that nvcc has for a compute capability.
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
#: Maximum shared memory of a block in bytes, over all architectures.
MAX_SHARED = max(multiprocessor.shared_of_block for multiprocessor in MULTIPROCESSORS.values())


def find_multiprocessor(arch: str) -> Multiprocessor | None:
    """Find the limits of an architecture such as ``sm_90a``; None if `MULTIPROCESSORS` lacks the architecture."""
    return MULTIPROCESSORS.get(arch.rstrip("af"))


def round_up(count: int, unit: int) -> int:
    """Round a count up to a multiple of a unit: (5, 4) -> 8."""
    return -(-count // unit) * unit


def fit_warps(registers: int) -> int:
    """Return the number of warps whose registers fit in an SM, with ``registers`` per thread; ignore other limits."""
    warp_registers = max(round_up(registers * WARP, REGISTER_UNIT), 1)
    return PARTITIONS * (REGISTERS // PARTITIONS // warp_registers)


def fit_registers(threads: int) -> int:
    """Return the maximum registers per thread, at most 255, in a block of ``threads`` threads."""
    partition_warps = -(-threads // (WARP * PARTITIONS))
    warp_registers = REGISTERS // PARTITIONS // partition_warps // REGISTER_UNIT * REGISTER_UNIT
    return min(warp_registers // WARP, 255)
