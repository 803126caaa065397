# pip install ./ptxcount triton==3.9.0
import numpy as np
import triton
import triton.language as tl

import ptxcount


@triton.jit
def double(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 2 * tl.load(x + tl.arange(0, BLOCK)))


counters = ptxcount.count(double, None, 1, None, [np.ones(256, np.float32), 256], arch="sm_90")
print(ptxcount.format_counters(counters))
