"""What the compiler made of the kernels: registers, spills and shared memory, on any machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelwatch import settings, suite
from kernelwatch.asv.plans.compiled import compiled
from kernelwatch.instrument import messages, prebuild, skips
from kernelwatch.toolchain.resources import Resources


class _Compiled(prebuild.BeforeFork):
    """Resources of one kernel, as ptxas reports them."""

    version = "1"
    timeout = 120.0

    def setup_cache(self) -> None:
        """Compile everything once, in parallel; the run then starts no process for what compiled."""
        prebuild.everywhere(list(map(str, suite.COMPILED.axes["arch"])))
        compiled(f"track_compiled.{suite.COMPILED.name}", tuple(suite.RESOURCES), Path())

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, kernel: str, dtype: str, flags: str, arch: str) -> None:
        """Read what the compiler reported; skip what the commit or the compiler lacks."""
        with skips.of_unknown_names(kernel, dtype), skips.of_unknown_archs():
            cubin = suite.kernel(kernel).cubin(dtype, flags, arch=arch)
        found = suite.COMPILED.launch({"kernel": kernel, "dtype": dtype, "flags": flags})
        messages.machine_code(cubin.sha256, found.machine_code, arch)
        self.resources: Resources = cubin.resources


def _metric(resource: str) -> Any:
    """Return the benchmark that reports one resource."""

    def track(self: _Compiled, *_: str) -> int:
        value: int = getattr(self.resources, resource)
        return value

    track.unit, title = suite.RESOURCES[resource]  # type: ignore[attr-defined]
    track.pretty_name = f"Compiled: {title}"  # type: ignore[attr-defined]
    track.benchmark_name = f"track_compiled.{suite.COMPILED.name}.track_{resource}"  # type: ignore[attr-defined]
    return track


def classes() -> dict[str, type[_Compiled]]:
    """Return the class of the suite by name."""
    sweep = suite.COMPILED
    body = {
        "__module__": f"{settings.suite_folder()}.track_compiled",
        "__doc__": _Compiled.__doc__,
        "params": [list(values) for values in sweep.axes.values()],
        "param_names": list(sweep.axes),
    }
    methods = {f"track_{resource}": _metric(resource) for resource in suite.RESOURCES}
    return {sweep.name: type(sweep.name, (_Compiled,), body | methods)}
