"""Launches that a GPU rejects: wrong dimensions, or a block that needs more registers or memory than an SM has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from ..machine.special_registers import RESERVED
from ..ptx.program import Entry
from ..source import ptxas
from ..source.names import source_name
from ..util import architectures
from ..util.architectures import MAX_BLOCK, MAX_CLUSTER, MAX_GRID, MAX_THREADS, WARP
from ..util.errors import Index3, LaunchError, Source
from ..util.findings import Finding
from .executable import lay_out_variables, load_executable

#: Maximum registers per thread (CUDA C++ Programming Guide, technical specifications).
_MAX_REGISTERS = 255
#: First compute capability whose shared memory begins behind the bytes that the driver reserves (nvcc 13.0.88).
_FIRST_SHIFTED = 90
#: Multiprocessors of an H200.
_MULTIPROCESSORS = 132


def check_dimensions(entry: Entry, grid: Index3, block: Index3, chosen_cluster: Index3 | None) -> Index3:
    """Raise `LaunchError` for a wrong grid, block or cluster; return the cluster, by default that of the kernel."""
    for dimension, extent, limit in (("grid", grid, MAX_GRID), ("block", block, MAX_BLOCK)):
        if len(extent) != 3:
            raise LaunchError(f"{dimension} is {extent}; give three numbers")
        for axis, n, most in zip("xyz", extent, limit, strict=True):
            if not 1 <= n <= most:
                raise LaunchError(f"{dimension}.{axis} is {n}; allowed are 1 to {most}")
    threads = prod(block)
    if threads > MAX_THREADS:
        raise LaunchError(f"block {block} has {threads} threads; at most {MAX_THREADS} are allowed")
    if entry.max_threads and threads > entry.max_threads:
        allowed = f"at most {entry.max_threads} are allowed by __launch_bounds__ (.maxntid)"
        raise LaunchError(f"block {block} has {threads} threads; {allowed}")
    if entry.exact_block and block != entry.exact_block:
        raise LaunchError(
            f"block is {block}; it must be {entry.exact_block}, for which the kernel was compiled (.reqntid)"
        )
    cluster = chosen_cluster or entry.cluster or (1, 1, 1)
    if any(extent % n for extent, n in zip(grid, cluster, strict=True)) or not 1 <= prod(cluster) <= MAX_CLUSTER:
        needed = f"it must divide the grid {grid}, and have at most {MAX_CLUSTER} blocks"
        raise LaunchError(f"cluster is {cluster}; {needed}")
    return cluster


def require_launchable(ptx: str, entry: str, block: Index3, dynamic_shared: int, flags: str, arch: str) -> None:
    """Raise `LaunchError` if an SM of the architecture cannot hold a block of the kernel.

    ptxas reports the registers per thread, with nvcc's ``flags``. Registers are not checked if ptxas is missing or
    fails, if even 255 per thread would fit, or for more threads than `check_dimensions` allows. Shared memory is not
    checked for an architecture that `find_multiprocessor` does not know. Also raises the errors of `load_executable`.
    """
    threads = prod(block)
    variables = load_executable(ptx, entry).variables
    shared_variables = [variable for variable in variables if variable.space == "shared" and not variable.problem]
    shared = lay_out_variables(shared_variables)[1] + dynamic_shared
    multiprocessor = architectures.find_multiprocessor(arch)
    if multiprocessor and shared > multiprocessor.shared_of_block:
        needed = f"a block needs {shared} bytes of shared memory, {dynamic_shared} of them dynamic"
        remedy = "use smaller tiles, or --arch for a GPU that allows more"
        raise LaunchError(f"{needed}; {arch} allows {multiprocessor.shared_of_block}; {remedy}")
    if not WARP * architectures.fit_warps(_MAX_REGISTERS) < threads <= MAX_THREADS:
        return
    resources = ptxas.assemble(ptx, flags, arch).get(entry)
    if resources is None:
        return
    max_threads = WARP * architectures.fit_warps(resources.registers)
    if threads > max_threads:
        warps = architectures.round_up(-(-threads // WARP), architectures.PARTITIONS)
        needed_registers = warps * architectures.round_up(WARP * resources.registers, architectures.REGISTER_UNIT)
        raise LaunchError(
            f"block {block} has {threads} threads of {resources.registers} registers; they need {needed_registers}, "
            f"but an SM has {architectures.REGISTERS}; launch at most {max_threads} threads per block, or compile with "
            f"__launch_bounds__({threads}) or -maxrregcount={architectures.fit_registers(threads)}"
        )


def iter_chip_findings(ptx: str, entry: str, arch: str) -> Iterator[Finding]:
    """Yield the findings that no instruction has: alignments that an architecture does not keep, unknown limits."""
    capability = re.search(r"\d+", arch)  # None for a name such as native
    is_shifted = capability is not None and int(capability[0]) >= _FIRST_SHIFTED
    for variable in load_executable(ptx, entry).variables:
        if variable.space == "shared" and variable.align > RESERVED and is_shifted:
            text = f"shared variable {source_name(variable.name)} is aligned to {variable.align} bytes here, but on "
            text += f"{arch} to {RESERVED}, where shared memory begins; do not compute addresses from its bits"
            yield Finding("lost-alignment", Source(1), text)
    if architectures.find_multiprocessor(arch) is None:
        text = f"shared memory of a block was not checked: ptxcount does not know the limits of {arch}"
        yield Finding("unknown-limits", Source(1), text)


def count_resident_blocks(threads: int, shared: int) -> int:
    """Return how many blocks of this size an H200 holds at once, as in a cooperative launch; ignore registers."""
    return _MULTIPROCESSORS * architectures.MULTIPROCESSORS["sm_90"].fit_blocks(threads, shared)
