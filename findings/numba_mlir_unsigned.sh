#!/usr/bin/env bash
# Guess: numba-cuda-mlir compares unsigned integers as unsigned, as numba-cuda does, in cuda.atomic.max() and in max().
# And cuda.atomic.inc() of uint32 is one atomic.
# What happens: both maxima are signed, of uint32 and of uint64, as are minima. `if value < least` is unsigned. inc()
# is a loop of load and compare-and-swap, where numba-cuda has `atom.inc`.
# Version: numba-cuda 0.30.4 and numba-cuda-mlir 0.6.0, a target of sm_90, which needs no GPU.
# Why it matters: a wrong result without an error, from 2^31 or 2^63 on. Kernels that find the largest float, or a place
# with its key, pack them into such integers, whose highest bit is set. A contended loop retries, an atomic does not.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An environment: numba-cuda takes the place of numba's own CUDA target by a .pth file, which PYTHONPATH does not read.
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check numba-cuda==0.30.4 numba==0.68.1 \
  numba-cuda-mlir==0.6.0 nvidia-cuda-nvrtc==13.5.37 nvidia-nvvm==13.5.37 nvidia-nvjitlink==13.5.37

cat >"$work/compare.py" <<'PYTHON'
import re
import sys
from importlib.metadata import version

if sys.argv[1] == "numba-cuda":
    from numba import cuda
else:
    import numba_cuda_mlir.tools
    from numba_cuda_mlir import cuda

    numba_cuda_mlir.tools._cached_cc = (9, 0)  # which it would ask a driver for

def atomic_max(output, source):
    cuda.atomic.max(output, 0, source[cuda.grid(1)])

def maximum(output, source):
    i = cuda.grid(1)
    output[i] = max(output[i], source[i])

def compare(output, source):
    i = cuda.grid(1)
    if source[i] < output[i]:
        output[i] = source[i]

def increment(output, source):
    cuda.atomic.inc(output, 0, source[cuda.grid(1)])

print(sys.argv[1], version(sys.argv[1]))
for kernel in atomic_max, maximum, compare, increment:
    for dtype in ("uint32", "uint64")[: 1 if kernel == increment else 2]:
        ptx, _ = cuda.compile_ptx(kernel, f"void({dtype}[::1], {dtype}[::1])", cc=(9, 0))
        found = re.findall(r"\b(?:atom\S+|max\.\S+|setp\.ge\.[us]\d+)", ptx)
        print(f"{kernel.__name__} {dtype}:", *found)
PYTHON
for package in numba-cuda numba-cuda-mlir; do
  "$work/venv/bin/python" -W ignore "$work/compare.py" "$package"
done | tee "$work/seen"

expected='numba-cuda 0.30.4
atomic_max uint32: atom.global.max.u32
atomic_max uint64: atom.global.max.u64
maximum uint32: max.u32
maximum uint64: max.u64
compare uint32: setp.ge.u32
compare uint64: setp.ge.u64
increment uint32: atom.global.inc.u32
numba-cuda-mlir 0.6.0
atomic_max uint32: atom.global.max.s32
atomic_max uint64: atom.global.max.s64
maximum uint32: max.s32
maximum uint64: max.s64
compare uint32: setp.ge.u32
compare uint64: setp.ge.u64
increment uint32: atom.global.cas.b32'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
