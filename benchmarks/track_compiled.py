"""What the compiler made of the kernels: registers, spills and shared memory, on any machine."""

from __future__ import annotations

from benchmarks import axes
from benchmarks.instruments import lacking, prebuild, remarks
from gpu_kernels import build
from gpu_kernels.resources import Resources


class Compiled:
    """Resources of one kernel, as ptxas reports them."""

    version = "1"
    timeout = 120.0
    params = [axes.KERNELS, axes.DTYPES, axes.FLAG_SETS, axes.ARCHS]
    param_names = ["kernel", "dtype", "flags", "arch"]

    def setup_cache(self) -> None:
        prebuild.everywhere(axes.ARCHS)

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, kernel: str, dtype: str, flag_set: str, arch: str) -> None:
        with lacking.skipped():
            cubin = build.cubin(kernel, dtype, flag_set, arch=arch)
        remarks.machine_code(cubin.sha256, kernel, dtype, flag_set, arch)
        self._resources: Resources = cubin.resources

    def track_registers(self, *_: str) -> int:
        return self._resources.registers

    def track_spill_bytes(self, *_: str) -> int:
        return self._resources.spill_bytes

    def track_shared_bytes(self, *_: str) -> int:
        return self._resources.shared_bytes

    track_registers.unit = "registers/thread"  # type: ignore[attr-defined]
    track_registers.pretty_name = "Compiled: registers a thread"  # type: ignore[attr-defined]
    track_spill_bytes.unit = "bytes/thread"  # type: ignore[attr-defined]
    track_spill_bytes.pretty_name = "Compiled: bytes spilled a thread"  # type: ignore[attr-defined]
    track_shared_bytes.unit = "bytes/block"  # type: ignore[attr-defined]
    track_shared_bytes.pretty_name = "Compiled: static shared memory a block"  # type: ignore[attr-defined]
