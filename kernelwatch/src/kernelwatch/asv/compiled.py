"""What the compiler made of the kernels: registers, spills and shared memory, on any machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelwatch import settings, suite
from kernelwatch.asv import background
from kernelwatch.asv.plans import plan as plans
from kernelwatch.asv.plans.plan import Configuration, Plan
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import messages, prebuild, skips
from kernelwatch.toolchain import machine_code
from kernelwatch.toolchain.build import Cubin


def everything(folder: Path) -> None:
    """Compile everything, in parallel; the plan goes into a folder."""
    prebuild.everywhere(list(map(str, suite.COMPILED.axes["arch"])))
    compiled(f"track_compiled.{suite.COMPILED.name}", tuple(suite.RESOURCES), folder)


class _Compiled(prebuild.BeforeFork):
    """Resources of one kernel, as ptxas reports them."""

    version = "1"
    timeout = 120.0

    def setup_cache(self) -> None:
        """Compile everything once, in parallel; the run then starts no process for what compiled."""
        background.done("compiled", everything)

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, kernel: str, dtype: str, flags: str, arch: str) -> None:
        """Read what the compiler reported; skip what the commit or the compiler lacks."""
        cubin = _cubin(kernel, dtype, flags, arch)
        found = suite.COMPILED.launch({"kernel": kernel, "dtype": dtype, "flags": flags})
        messages.machine_code(cubin.sha256, found.machine_code, arch)
        self.resources = cubin.resources


def _cubin(kernel: str, dtype: str, flags: str, arch: str) -> Cubin:
    with skips.of_unknown_names(kernel, dtype), skips.of_unknown_archs():
        return suite.kernel(kernel).cubin(dtype, flags, arch=arch)


def compiled(name: str, resources: Sequence[str], folder: Path) -> None:
    """Plan the compiled numbers of a commit. All of it lies in the cache of cubins, so nothing needs a process.

    Parameters
    ----------
    name : str
        The class, with its module.
    resources : sequence of str
        What is read of the compiler's report.
    folder : Path
        Where the plan goes.
    """
    ones: list[Configuration] = []
    cubins: defaultdict[str, dict[int, bytes]] = defaultdict(dict)
    for point in suite.COMPILED.points():
        one = Configuration(plans.text(point))
        kernel, dtype, flags, arch = map(str, point.values())
        try:
            cubin = _cubin(kernel, dtype, flags, arch)
        except NotImplementedError as error:
            one.skipped = str(error)
        except ERRORS:
            pass  # asv's process meets it again, and reports it
        else:
            one.machine_code = (cubin.sha256, suite.COMPILED.launch(point).machine_code, arch)
            cubins[arch][len(ones)] = cubin.data
            one.answers = {f"{name}.track_{each}": [getattr(cubin.resources, each)] for each in resources}
        ones.append(one)
    plan = Plan({name: ones})
    for arch, of_it in cubins.items():
        for place, code in machine_code.codes(of_it, arch).items():
            ones[place].machine_code += (code.sha256,)
            plan.instructions |= {code.sha256: code.instructions} if code.instructions else {}
    plan.write(folder)


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
