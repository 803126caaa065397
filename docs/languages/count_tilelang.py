# pip install ./ptxcount tilelang==0.1.15
import numpy as np
import tilelang
import tilelang.language as T

import ptxcount


@T.prim_func
def double(x: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=256):
        for i in T.Parallel(256):
            x[i] = 2 * x[i]


with tilelang.tvm.target.Target({"kind": "cuda", "arch": "sm_90"}) as target:
    kernel = tilelang.lower(double, target=target)
print(ptxcount.format_counters(ptxcount.count(kernel, None, 1, None, {"x": np.ones(256, np.float32)})))
