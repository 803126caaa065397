"""Compiling ahead, all cores at once, so that no benchmark's process waits for nvcc."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress

from benchmarks import axes
from benchmarks.instruments import machine, tools
from gpu_kernels import build, nvcc
from gpu_kernels.errors import GpuKernelsError

#: Seconds that compiling everything may take: two busy cores need over two minutes.
TIMEOUT = 1200.0

with suppress(GpuKernelsError):  # whoever compiles meets it again
    nvcc.version(nvcc.find_nvcc())  # asked once, in asv's fork server, for all processes forked from it


def everywhere(archs: Sequence[str]) -> None:
    """Compile every kernel, dtype and flag set of the axes for `archs` into the cache.

    Errors are printed only: the benchmark that needs the configuration meets them again, and reports them.
    """
    # Side by side what differs in its flag set alone: nvcc's longest step is the same for them.
    points = itertools.product(archs, axes.DTYPES, axes.KERNELS, axes.FLAG_SETS)
    configurations = [(kernel, dtype, flag_set, arch) for arch, dtype, kernel, flag_set in points]
    for configuration, error in zip(configurations, build.prebuild(configurations), strict=True):
        if error is not None:
            print(f"{', '.join(configuration)}: {error}")


def for_device() -> None:
    """Compile for the GPU of this machine, if it has one. Does not initialise CUDA."""
    gpu = machine.gpu()
    if gpu is not None:
        everywhere([gpu.arch])
        tools.prebuild(gpu.arch)
