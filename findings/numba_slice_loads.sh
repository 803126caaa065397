#!/usr/bin/env bash
# Guess: a Numba kernel that reads an array in global memory does so with `ld.global`, whatever slice it gets.
# What happens: for a slice with a step, or for some columns of a matrix, the same kernel reads with the generic `ld`,
# which serves any memory. For a whole array, or for some rows, it is `ld.global`. The array's layout decides: 'A'
# (any strides) against 'C' (contiguous).
# Version: numba-cuda 0.30.4, numba 0.68.1, NVVM 13.5.37, a target of sm_90, which needs no GPU.
# Why it matters: a tool that counts `ld.global` in PTX sees no load at all in such a kernel, and it looks for
# strided slices. A signature of `float32[:]` has this layout even for contiguous arrays.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An environment: numba-cuda takes the place of numba's own CUDA target by a .pth file, which PYTHONPATH does not read.
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check \
  numba-cuda==0.30.4 numba==0.68.1 nvidia-cuda-nvrtc==13.5.37 nvidia-nvvm==13.5.37

cat >"$work/copy_kernels.py" <<'PYTHON'
import re

import numba
import numba_cuda
import numpy as np
from numba import cuda

def copy(output, source):
    i = cuda.grid(1)
    output[i] = source[i]

def copy_row(output, source):
    i = cuda.threadIdx.x
    output[i] = source[cuda.blockIdx.x, i]

print("numba-cuda", numba_cuda.__version__, "numba", numba.__version__)
vector, matrix = np.zeros(64, np.float32), np.zeros((8, 8), np.float32)
for label, kernel, source in [
    ("vector", copy, vector),
    ("vector[:32]", copy, vector[:32]),
    ("vector[::2]", copy, vector[::2]),
    ("matrix[2:4]", copy_row, matrix[2:4]),
    ("matrix[:, 2:4]", copy_row, matrix[:, 2:4]),
]:
    layout = numba.typeof(source).layout
    ptx, _ = cuda.compile_ptx(kernel, (numba.float32[::1], numba.typeof(source)), cc=(9, 0))
    loads = re.findall(r"\bld\.(?!param)[a-z0-9.]+", ptx)
    print(f"{label}: layout {layout}, {' '.join(loads)}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/copy_kernels.py" | tee "$work/seen"

expected='numba-cuda 0.30.4 numba 0.68.1
vector: layout C, ld.global.f32
vector[:32]: layout C, ld.global.f32
vector[::2]: layout A, ld.f32
matrix[2:4]: layout C, ld.global.f32
matrix[:, 2:4]: layout A, ld.f32'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
