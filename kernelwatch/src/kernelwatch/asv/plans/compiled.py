"""The plan of what the compiler made of a commit. All of it lies in the cache of cubins, so nothing needs a process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from kernelwatch import suite
from kernelwatch.asv.plans import plan as plans
from kernelwatch.asv.plans.plan import Configuration, Plan
from kernelwatch.errors import ERRORS
from kernelwatch.instrument import skips
from kernelwatch.toolchain import machine_code


def compiled(name: str, resources: Sequence[str], folder: Path) -> None:
    """Plan the compiled numbers of a commit.

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
            with skips.of_unknown_names(kernel, dtype), skips.of_unknown_archs():
                cubin = suite.kernel(kernel).cubin(dtype, flags, arch=arch)
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
