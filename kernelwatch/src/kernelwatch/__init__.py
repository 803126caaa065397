"""Watch CUDA kernels over the history of a project: resources, memory transactions and times of each commit."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelwatch.benchmarks.watched import Watched as Watched
    from kernelwatch.benchmarks.watched import watch as watch
    from kernelwatch.kernel import Kernel as Kernel
    from kernelwatch.kernel.jit_arguments import numba_arguments as numba_arguments
    from kernelwatch.kernel.jit_arguments import triton_arguments as triton_arguments
    from kernelwatch.kernel.parameters import in_and_out as in_and_out
    from kernelwatch.kernel.parameters import inputs as inputs
    from kernelwatch.kernel.parameters import outputs as outputs
    from kernelwatch.kernel.parameters import scalar as scalar


#: Public name -> its module. `__getattr__` imports the module when the name is first used.
_PUBLIC = {
    "Kernel": "kernelwatch.kernel",
    **dict.fromkeys(("in_and_out", "inputs", "outputs", "scalar"), "kernelwatch.kernel.parameters"),
    "numba_arguments": "kernelwatch.kernel.jit_arguments",
    "triton_arguments": "kernelwatch.kernel.jit_arguments",
    **dict.fromkeys(("Watched", "watch"), "kernelwatch.benchmarks.watched"),
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)
