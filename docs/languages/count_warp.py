# pip install ./ptxcount warp-lang==1.19.0
import numpy as np
import warp as wp

import ptxcount


@wp.kernel
def double(x: wp.array(dtype=float)):
    x[wp.tid()] *= 2.0


counters = ptxcount.count(double, None, 256, 128, [np.ones(256, np.float32)], arch="sm_90")
print(ptxcount.format_counters(counters))
