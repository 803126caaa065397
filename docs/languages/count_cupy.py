# pip install './ptxcount[nvcc]' cupy-cuda13x==14.2.0
import cupy
import numpy as np

import ptxcount

kernel = cupy.RawKernel('extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }', "twice")
counters = ptxcount.count(kernel, None, 1, 256, [np.ones(256, np.float32)], arch="sm_90")
print(ptxcount.format_counters(counters))
