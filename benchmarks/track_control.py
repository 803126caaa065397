"""Copy ratios of all timed classes: a kernel's time divided by the time of a plain copy of the same useful bytes."""

import kernelwatch.benchmarks as kw
from benchmarks import time_copy, time_kernel, time_transpose
from kernelwatch.benchmarks import base

globals().update(
    {
        timed.__name__: type(timed.__name__, (kw.Control,), {"timed": timed, "__module__": __name__})
        for module in (time_copy, time_transpose, time_kernel)
        for timed in base.iter_benchmarks(module)
        if timed is not time_copy.DeviceCopy
    }
)
