"""Resources that the compiler assigns to the kernels: registers, spills and shared memory, on any machine."""

import kernelwatch.benchmarks as kw
from benchmarks import track_counted
from benchmarks.sweeps import ARCHS, FLAG_SETS, SERIAL, TRANSPOSES
from kernelwatch.benchmarks import base

_COUNTED = [benchmark.sweep for benchmark in base.iter_benchmarks(track_counted)]

#: The counted kernels. Stored results begin with the kernels that are named here.
KERNELS = tuple(
    dict.fromkeys(
        (
            *("offset_copy", "stride_copy", *TRANSPOSES, *SERIAL),
            *(str(kernel) for sweep in _COUNTED for kernel in sweep.axes.get("kernel", [sweep.kernel])),
        )
    )
)
DTYPES = tuple(dict.fromkeys(dtype for sweep in _COUNTED for dtype in sweep.axes["dtype"]))


class Compiled(kw.Compiled):
    """Compiled."""

    param_names = ("kernel", "dtype", "flags", "arch")
    params = (KERNELS, DTYPES, FLAG_SETS, ARCHS)
    shown = {"dtype": "float32", "arch": "sm_90"}
