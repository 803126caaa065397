"""Resources that the compiler assigns to the kernels: registers, spills and shared memory, on any machine."""

from typing import Any

from kernelwatch.benchmarks.base import Benchmark, measures
from kernelwatch.instrument import prebuild, skip_reasons
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import COMPILED_MODULE
from kernelwatch.toolchain.build import Cubin


class Compiled(Benchmark):
    """Resources of one kernel, as ptxas reports them. The class has a `track_` method for each of `registry.RESOURCES`.

    The axes are kernel, dtype, flags and arch, in this order.
    """

    module = COMPILED_MODULE
    version = "1"
    timeout = 120.0

    def setup_cache(self) -> None:
        """Compile all kernels into the cache, in parallel; asv calls this once."""
        prebuild.compile_for_archs(list(map(str, self.sweep.axes["arch"])))

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, kernel: str, dtype: str, flags: str, arch: str) -> None:
        """Compile a kernel and read its resources. Skip the configuration if commit or compiler does not support it."""
        self.resources = compile_cubin(kernel, dtype, flags, arch).resources


def _make_track_method(resource: str) -> Any:
    unit, title = registry.RESOURCES[resource]

    @measures(title, unit)
    def track(self: Compiled, *params: Any) -> int:
        return int(getattr(self.resources, resource))

    return track


for _name in registry.RESOURCES:
    setattr(Compiled, f"track_{_name}", _make_track_method(_name))


def compile_cubin(kernel: str, dtype: str, flags: str, arch: str) -> Cubin:
    """Compile a kernel to a cubin. Raises NotImplementedError if commit or compiler does not support the kernel.

    `Kernel.compile_cubin` lists the other exceptions.
    """
    with skip_reasons.skip_unknown_names(kernel, dtype), skip_reasons.skip_unknown_archs():
        return registry.find_kernel(kernel).compile_cubin(dtype, flags, arch=arch)
