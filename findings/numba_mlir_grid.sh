#!/usr/bin/env bash
# Guess: `i = cuda.grid(1)` is the thread's number in numba-cuda-mlir as in numba-cuda, which computes it with 64 bits.
# What happens: it is computed with 32 bits, and then extended with its sign. Thread 2^31 gets -2^31, and passes
# `i < a.size`. As negative indices count from the end, it writes a[a.size - 2^31]: for 3 x 2^30 elements the element of
# thread 2^30. gridsize() is alike. `blockIdx.x * blockDim.x + threadIdx.x`, written out, has 64 bits.
# Version: numba-cuda 0.30.4 and numba-cuda-mlir 0.6.0, sm_90, which needs no GPU. Seen on 30 November 2026.
# Why it matters: 2 GiB of bytes or 8 GiB of float32 suffice. The last elements keep their old values, and others are
# written twice, without an error. A profiler counts as many sectors as the right kernel has.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An environment: numba-cuda takes the place of numba's own CUDA target by a .pth file, which PYTHONPATH does not read.
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check numba-cuda==0.30.4 numba==0.68.1 \
  numba-cuda-mlir==0.6.0 nvidia-cuda-nvrtc==13.5.37 nvidia-nvvm==13.5.37 nvidia-nvjitlink==13.5.37

cat >"$work/fill.py" <<'PYTHON'
import re
import sys
from importlib.metadata import version

if sys.argv[1] == "numba-cuda":
    from numba import cuda
else:
    import numba_cuda_mlir.tools
    from numba_cuda_mlir import cuda

    numba_cuda_mlir.tools._cached_cc = (9, 0)  # which it would ask a driver for

def grid(output):
    i = cuda.grid(1)
    if i < output.size:
        output[i] = 7

def written_out(output):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < output.size:
        output[i] = 7

def stride(output):
    output[cuda.gridsize(1) - 1] = 7

print(sys.argv[1], version(sys.argv[1]))
for kernel in grid, stride, written_out:
    ptx, _ = cuda.compile_ptx(kernel, "void(uint8[::1])", cc=(9, 0))
    operations = re.findall(r"^\t(?:mul|mad|cvt|setp|selp|shr|and)\.\S+", ptx, re.MULTILINE)
    print(f"{kernel.__name__}:", *(operation.strip() for operation in operations))
PYTHON
for package in numba-cuda numba-cuda-mlir; do
  "$work/venv/bin/python" -W ignore "$work/fill.py" "$package"
done | tee "$work/seen"

expected='numba-cuda 0.30.4
grid: cvt.s64.s32 mul.wide.s32 setp.ge.s64 shr.s64 and.b64
stride: mul.wide.s32 setp.lt.s64 selp.b64
written_out: mul.wide.s32 cvt.s64.s32 setp.ge.s64 shr.s64 and.b64
numba-cuda-mlir 0.6.0
grid: mad.lo.s32 cvt.s64.s32 setp.ge.s64 cvt.u32.u64 setp.lt.s32 selp.b64 mul.lo.s64
stride: mul.lo.s32 cvt.s64.s32 setp.lt.s32 selp.b64 mul.lo.s64
written_out: mul.wide.s32 cvt.s64.s32 setp.ge.s64 shr.s64 and.b64 mul.lo.s64'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
