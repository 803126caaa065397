# pip install ./ptxcount 'numba-cuda[cu13]==0.30.4'
import numpy as np
from numba import cuda

import ptxcount


@cuda.jit
def double(x):
    x[cuda.grid(1)] *= 2


counters = ptxcount.count(double, None, 2, 128, [np.ones(256, np.float32)], arch="sm_90")
print(ptxcount.format_counters(counters))
