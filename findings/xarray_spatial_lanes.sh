#!/usr/bin/env bash
# Guess, written before the run: neighbouring lanes of xarray-spatial's CUDA kernels read and write neighbours of a
# raster, which lie in a row.
# What happens: kernels begin with `i, j = cuda.grid(2)` and take i, which counts threads in a warp's order, as the
# row. With their blocks of 22 x 22 threads a warp is in 22 rows and two columns: a store of 32 float32 touches 22
# sectors, and so does a load. slope, aspect, curvature, reclassify and convolution_2d likewise. `focal.mean`, whose
# kernel begins with `x, y = cuda.grid(2)`, touches 6.
# Version: xarray-spatial 0.10.20, its kernels' Python code run thread by thread on the CPU; numba 0.66.0. Seen on 1
# December 2026.
# Why it matters: four times the sectors a request in nearly each operation on a raster. numba_documented_matmul has
# the same order, in Numba's documentation.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
# The package asks for Python 3.12, which these modules do not need.
venv/bin/python -m pip install -qq --disable-pip-version-check --no-deps --ignore-requires-python \
  xarray-spatial==0.10.20
venv/bin/python -m pip install -qq --disable-pip-version-check numba==0.66.0 xarray==2026.4.0 numpy==2.4.6 \
  scipy==1.17.1 urllib3==2.8.0
export HOME="$work"

cat >run.py <<'PYTHON'
from importlib import import_module
from types import SimpleNamespace

import numba
import numpy
import xrspatial.utils

place = None
numba.cuda.grid = lambda dimensions: place
numba.cuda.get_current_device = lambda: SimpleNamespace(MAX_THREADS_PER_BLOCK=1024)
rows = columns = 1024
raster = numpy.random.default_rng(0).random((rows, columns), dtype=numpy.float32)
one = numpy.ones(1, dtype=numpy.float32)

class Output:
    """Note where the kernel stores."""

    shape = raster.shape

    def __init__(self):
        self.stores = []

    def __setitem__(self, index, value):
        self.stores.append(index)

def run_warp(module, kernel, *arguments):
    """Return the threads of a block, and the sectors of the store of its second warp."""
    global place
    function = getattr(import_module(f"xrspatial.{module}"), kernel).py_func
    for name, value in function.__globals__.items():
        if isinstance(value, numba.cuda.dispatcher.CUDADispatcher):
            function.__globals__[name] = value.py_func
    _, (width, height) = xrspatial.utils.cuda_args(raster.shape)
    output = Output()
    for thread in range(32, 64):
        place = 10 * width + thread % width, 10 * height + thread // width
        function(*arguments, output)
    sectors = {(row * columns + column) * 4 // 32 for row, column in output.stores}
    return f"blocks of {width} x {height}, {len(output.stores)} lanes store to {len(sectors)} sectors"

print("xarray-spatial", xrspatial.__version__, "numba", numba.__version__)
print("slope:", run_warp("slope", "_run_gpu", raster, one, one))
print("aspect:", run_warp("aspect", "_run_gpu", raster, one, one))
print("curvature:", run_warp("curvature", "_run_gpu", raster, one))
print("reclassify:", run_warp("classify", "_run_gpu_bin", raster, one, one))
print("convolution_2d:", run_warp("convolution", "_convolve_2d_cuda", raster, numpy.ones((3, 3))))
print("focal.mean:", run_warp("focal", "_mean_gpu", raster, numpy.array([numpy.nan])))
PYTHON
venv/bin/python -W ignore run.py 2>messages | tee seen

expected='xarray-spatial 0.10.20 numba 0.66.0
slope: blocks of 22 x 22, 32 lanes store to 22 sectors
aspect: blocks of 22 x 22, 32 lanes store to 22 sectors
curvature: blocks of 22 x 22, 32 lanes store to 22 sectors
reclassify: blocks of 22 x 22, 32 lanes store to 22 sectors
convolution_2d: blocks of 22 x 22, 32 lanes store to 22 sectors
focal.mean: blocks of 22 x 22, 32 lanes store to 6 sectors'
[ "$(cat seen)" = "$expected" ] || { cat messages >&2; echo 'the behaviour changed' >&2; exit 1; }
