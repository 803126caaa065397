"""Compiles everything ahead, on all cores, so that no benchmark's process waits for nvcc."""

from __future__ import annotations

import multiprocessing
from collections.abc import Container, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from kernelwatch.errors import ERRORS
from kernelwatch.instrument import machine
from kernelwatch.suite import registry

#: Seconds that compiling everything may take: two busy cores need over two minutes.
TIMEOUT = 1200.0

#: A kernel's name, dtype, flags and architecture.
Configuration = tuple[str, str, str, str]


def configurations(archs: Sequence[str]) -> list[Configuration]:
    """Return all that is measured and that the installed commit has.

    Side by side stands what differs in its flags alone: nvcc's longest step is the same for these.
    """
    axes, meant = registry.current().compiled.axes, registry.current().dtypes
    return [
        (str(name), str(dtype), str(flags), arch)
        for arch in archs
        for dtype in axes["dtype"]
        for name in axes["kernel"]
        if name in registry.current().kernels() and dtype in meant[str(name)]
        for flags in axes["flags"]
    ]


def compiled(wanted: Iterable[Configuration], processes: int | None = None) -> Iterator[Exception | None]:
    """Compile into the cache, in parallel processes. Yield an error or None for each.

    Must be called before CUDA is initialised in this process, as it forks.
    """
    with ProcessPoolExecutor(processes, multiprocessing.get_context("fork")) as pool:
        yield from pool.map(_compiled, wanted, chunksize=len(registry.current().compiled.axes["flags"]))


def _compiled(one: Configuration) -> Exception | None:
    kernel, dtype, flags, arch = one
    try:
        registry.kernel(kernel).cubin(dtype, flags, arch=arch)
    except ERRORS as error:
        return error
    return None


def everywhere(archs: Sequence[str], only: Container[tuple[str, ...]] | None = None) -> None:
    """Compile every configuration for `archs` into the cache; if told, only those of some kernels, dtypes and flags.

    Errors are printed only: the benchmark that needs the configuration meets them again, and reports them.
    """
    wanted = [each for each in configurations(archs) if only is None or each[:3] in only]
    for configuration, error in zip(wanted, compiled(wanted), strict=True):
        if error is not None:
            print(f"{', '.join(configuration)}: {error}")


def for_device() -> None:
    """Compile what is timed for the GPU of this machine, if it has one. Does not initialise CUDA."""
    gpu = machine.gpu()
    if gpu is not None:
        from kernelwatch.instrument import helper_kernels  # noqa: PLC0415 -- of what times alone

        launches = (sweep.launch(point) for sweep in registry.current().timed for point in sweep.points())
        everywhere([gpu.arch], {(each.kernel, each.dtype, each.flags) for each in launches})
        helper_kernels.prebuild(gpu.arch)
