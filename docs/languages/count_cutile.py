# pip install './ptxcount[cubin]' 'cuda-tile[tileiras]==1.7.0'
import cuda.tile as ct
import numpy as np

import ptxcount


@ct.kernel
def double(x):
    ct.store(x, index=(0,), tile=2 * ct.load(x, index=(0,), shape=(256,)))


counters = ptxcount.count(double, None, 1, None, [np.ones(256, np.float32)], arch="sm_80")
print(ptxcount.format_counters(counters))
