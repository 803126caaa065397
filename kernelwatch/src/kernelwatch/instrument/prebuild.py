"""Compiles everything ahead, on all cores, so that no benchmark's process waits for nvcc."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from benchmarks.checkout import today
from gpu_kernels import build, catalog, nvcc
from gpu_kernels.errors import GpuKernelsError
from kernelwatch.instrument import machine, tools

#: Seconds that compiling everything may take: two busy cores need over two minutes.
TIMEOUT = 1200.0


class BeforeFork:
    """A benchmark that knows nvcc's version: asv's fork server makes one of each before it forks, and so asks for all.

    Importing a benchmark starts no process; making one does, once.
    """

    def __init__(self) -> None:
        with suppress(GpuKernelsError):  # whoever compiles meets it again
            nvcc.version(nvcc.find_nvcc())


def configurations(archs: Sequence[str]) -> list[build.Configuration]:
    """Return kernel, dtype, flag set and architecture of all that is measured and that the installed commit has.

    Side by side stands what differs in its flag set alone: nvcc's longest step is the same for these.
    """
    return [
        (name, dtype, flag_set, arch)
        for arch in archs
        for dtype in today.DTYPES
        for name, kernel in today.KERNELS.items()
        if name in catalog.KERNELS and dtype in kernel.operation.dtypes
        for flag_set in today.FLAG_SETS
    ]


def everywhere(archs: Sequence[str]) -> None:
    """Compile every configuration for `archs` into the cache.

    Errors are printed only: the benchmark that needs the configuration meets them again, and reports them.
    """
    wanted = configurations(archs)
    for configuration, error in zip(wanted, build.prebuild(wanted), strict=True):
        if error is not None:
            print(f"{', '.join(configuration)}: {error}")


def for_device() -> None:
    """Compile for the GPU of this machine, if it has one. Does not initialise CUDA."""
    gpu = machine.gpu()
    if gpu is not None:
        everywhere([gpu.arch])
        tools.prebuild(gpu.arch)
