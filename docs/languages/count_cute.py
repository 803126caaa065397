# pip install ./ptxcount nvidia-cutlass-dsl==4.8.1
import cutlass.cute as cute
import numpy as np
from cutlass.cute.runtime import from_dlpack

import ptxcount


@cute.kernel
def double(x: cute.Tensor):
    x[cute.arch.thread_idx()[0]] *= 2.0


@cute.jit
def launch(x: cute.Tensor):
    double(x).launch(grid=(1, 1, 1), block=(256, 1, 1))


kernel = cute.compile(launch, from_dlpack(x := np.ones(256, np.float32)), options="--gpu-arch sm_90a --keep-ptx")
print(ptxcount.format_counters(ptxcount.count(kernel, None, 1, None, [x])))
