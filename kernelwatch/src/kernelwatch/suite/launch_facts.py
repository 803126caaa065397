"""Facts about a configuration of a benchmark: its launch, its kernel, and the bytes and operations of the launch."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import TypeVar

from kernelwatch.errors import KernelwatchError
from kernelwatch.kernel import Kernel, Launch, matrix_copy
from kernelwatch.kernel.launch import read_parameters
from kernelwatch.suite import registry

T = TypeVar("T")
#: Type of a configuration's parameters.
P = TypeVar("P")


def cache_by_class(compute: Callable[[str, Mapping[str, P]], T]) -> Callable[[str, Mapping[str, P]], T]:
    """Cache a function of a configuration for each suite, if all benchmarks of a class have the same result."""
    results: dict[object, T] = {}

    @wraps(compute)
    def wrapper(benchmark: str, params: Mapping[str, P]) -> T:
        key = registry.suite_identity(), benchmark.rpartition(".")[0], *params.items()
        if key not in results:
            results[key] = compute(benchmark, params)
        return results[key]

    return wrapper


@cache_by_class
def find_launch(benchmark: str, params: Mapping[str, object]) -> Launch | None:
    """Return a configuration's launch; None without a suite, or if the parameters determine none.

    Results may be older or newer than the suite, which then lacks their benchmark class. Then the parameters alone are
    used.
    """
    try:
        if sweep := registry.current_suite().sweeps.get(benchmark.rpartition(".")[0]):
            return sweep.launch(params)
        launch_fields = read_parameters(params)
        return Launch(**launch_fields) if "kernel" in launch_fields else None
    except (ValueError, KernelwatchError):
        return None


def find_definition(benchmark: str, params: Mapping[str, object]) -> Kernel | None:
    """Return a configuration's kernel as the suite declares it today; None without a launch or a kernel."""
    launch = find_launch(benchmark, params)
    try:
        return None if launch is None else registry.find_declared_kernel(launch.kernel)
    except KernelwatchError:
        return None


@cache_by_class
def find_useful_bytes(benchmark: str, params: Mapping[str, object]) -> int | None:
    """Return the bytes that a configuration must move; None if these bytes are unknown."""
    launch, kernel = find_launch(benchmark, params), find_definition(benchmark, params)
    with suppress(TypeError):  # the launch has other arguments than the copy
        if launch and launch.kernel == matrix_copy.NAME:
            return matrix_copy.useful_bytes(launch.dtype, **launch.arguments)
    with suppress(TypeError, KernelwatchError):  # the launch has other arguments than today's kernel
        if launch and kernel:
            return kernel.useful_bytes(launch.dtype, **launch.arguments)
    return None


@cache_by_class
def find_flops(benchmark: str, params: Mapping[str, object]) -> int | None:
    """Return the number of floating-point operations that a configuration must do; None if it is 0 or unknown."""
    launch, kernel = find_launch(benchmark, params), find_definition(benchmark, params)
    with suppress(TypeError, KernelwatchError):  # the launch has other arguments than today's kernel
        if launch and kernel:
            return kernel.flops(**launch.arguments) or None
    return None


def is_verified(kernel: Kernel | None) -> bool:
    """Return whether a kernel's output is compared with a reference; True if the kernel is unknown."""
    return kernel is None or kernel.reference is not None


def find_code_name(benchmark: str, params: Mapping[str, object]) -> str | None:
    """Return the name of a configuration's machine code in `cubins.jsonl`; None if there is no launch."""
    launch = find_launch(benchmark, params)
    return None if launch is None else launch.code_name
