"""Compile the measured kernels into the cache in advance, on all cores, so that no benchmark waits for nvcc."""

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import product

from kernelwatch.errors import ERRORS
from kernelwatch.kernel import Launch
from kernelwatch.suite import registry

#: Maximum seconds for compiling all kernels. Two busy cores need over two minutes.
TIMEOUT = 1200.0

#: A kernel's name, dtype, flags and architecture.
CubinKey = tuple[str, str, str, str]


def list_cubins(archs: Sequence[str]) -> list[CubinKey]:
    """Return the cubins that the suite compiles for some architectures, of the kernels that the installed commit has.

    A kernel that the suite does not count has all dtypes that it supports. Cubins that differ only in flags are
    neighbours, because they share nvcc's longest step.
    """
    suite = registry.current_suite()
    axes, kernels = suite.compiled.axes, suite.kernels()
    dtypes = {name: suite.dtypes.get(name, kernel.dtypes or axes["dtype"]) for name, kernel in kernels.items()}
    return [
        (str(name), str(dtype), str(flags), arch)
        for arch, dtype, name, flags in product(archs, axes["dtype"], axes["kernel"], axes["flags"])
        if dtype in dtypes.get(str(name), ())
    ]


def compile_cubins(cubins: Iterable[CubinKey]) -> Iterator[Exception | None]:
    """Compile cubins into the cache, in parallel processes; yield each compilation's error or None.

    Call this before CUDA is initialised in this process, because it forks.
    """
    import multiprocessing  # noqa: PLC0415 -- a review, which imports this module, does not compile
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        yield from pool.map(_compile_cubin, cubins, chunksize=len(registry.current_suite().compiled.axes["flags"]))


def _compile_cubin(cubin: CubinKey) -> Exception | None:
    kernel, dtype, flags, arch = cubin
    try:
        registry.find_kernel(kernel).compile_cubin(dtype, flags, arch=arch)
    except ERRORS as error:
        return error
    return None


def compile_for_archs(archs: Sequence[str], only: Container[tuple[str, ...]] | None = None) -> None:
    """Compile the suite's cubins for `archs` into the cache. If `only` is given, it selects (kernel, dtype, flags).

    Errors are only printed, because the benchmarks that need the cubins raise them again.
    """
    cubins = [cubin for cubin in list_cubins(archs) if only is None or cubin[:3] in only]
    for cubin, error in zip(cubins, compile_cubins(cubins), strict=True):
        if error is not None:
            print(f"cannot compile {', '.join(cubin)}: {error}")


def compile_for_device(launches: Iterable[Launch] | None = None) -> None:
    """Compile the helper kernels, and those of `list_cubins` that are timed, for this machine's GPU, if there is one.

    `launches` are the timed launches, by default all of the suite. This does not initialise CUDA. Raises
    NvccNotFoundError or CompileError if a helper kernel cannot be compiled.
    """
    from kernelwatch.instrument import machine  # noqa: PLC0415 -- imports NVML

    gpu = machine.find_gpu()
    if gpu is not None:
        from kernelwatch.instrument import helper_kernels  # noqa: PLC0415 -- only needed for times

        if launches is None:
            launches = (sweep.launch(point) for sweep in registry.current_suite().timed for point in sweep.points())
        compile_for_archs([gpu.arch], {(launch.kernel, launch.dtype, launch.flags) for launch in launches})
        helper_kernels.compile_helpers(gpu.arch)
