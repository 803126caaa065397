#!/usr/bin/env bash
# Guess, written after the first sign: a kernel reads an element of a complex64 array with one access of 8 bytes, as CUDA C++ reads a float2.
# What happens: two accesses of 4 bytes, for the real and for the imaginary part, and two for a store. The lanes of each
# lie 8 bytes apart: its request touches 8 sectors and uses half of each, and each sector is asked for twice. complex128
# is two accesses of 8 bytes. A view of the array as 64-bit integers is copied with one.
# Version: numba-cuda 0.30.4, numba-cuda-mlir 0.6.0, a target of sm_90, which needs no GPU.
# Why it matters: a copy of complex numbers, contiguous and aligned, counts twice the sectors that it needs, and half of
# each is unused, though no index of the kernel is strided.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An environment: numba-cuda takes the place of numba's own CUDA target by a .pth file, which PYTHONPATH does not read.
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check numba-cuda==0.30.4 numba==0.68.1 \
  numba-cuda-mlir==0.6.0 nvidia-cuda-nvrtc==13.5.37 nvidia-nvvm==13.5.37 nvidia-nvjitlink==13.5.37

cat >"$work/copy_kernels.py" <<'PYTHON'
import re
import sys
from importlib.metadata import version

if sys.argv[1] == "numba-cuda":
    from numba import cuda
else:
    import numba_cuda_mlir.tools
    from numba_cuda_mlir import cuda

    numba_cuda_mlir.tools._cached_cc = (9, 0)  # which it would ask a driver for

def copy(output, source):
    i = cuda.grid(1)
    output[i] = source[i]

print(sys.argv[1], version(sys.argv[1]))
for dtype in ("int64", "complex64", "complex128"):
    ptx, _ = cuda.compile_ptx(copy, f"void({dtype}[::1], {dtype}[::1])", cc=(9, 0))
    print(f"{dtype}:", *re.findall(r"\b(?:ld|st)\.global[.a-z0-9]+", ptx))
PYTHON
for package in numba-cuda numba-cuda-mlir; do
  "$work/venv/bin/python" -W ignore "$work/copy_kernels.py" "$package"
done | tee "$work/seen"

accesses='int64: ld.global.u64 st.global.u64
complex64: ld.global.f32 ld.global.f32 st.global.f32 st.global.f32
complex128: ld.global.f64 ld.global.f64 st.global.f64 st.global.f64'
expected="numba-cuda 0.30.4
$accesses
numba-cuda-mlir 0.6.0
$accesses"
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
