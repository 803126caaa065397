#!/usr/bin/env bash
# Guess: `cuda.atomic.sub(output, 0, value)` of floats is one atomic addition of -value, as cuda.atomic.add() is one.
# What happens: a loop: a volatile load, then compare-and-swap until no other thread came between. Of integers it is one
# addition of the negative. numba-cuda-mlir adds the negative of floats, too.
# Version: numba-cuda 0.30.4 and numba-cuda-mlir 0.6.0, a target of sm_90, which needs no GPU.
# Why it matters: 32 lanes that subtract from one address make 32 turns of the loop, each with a load and an atomic
# that returns. `cuda.atomic.add(output, 0, -value)` is one reduction, equal but for subnormals (ptxas_flushes_atomics).
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An environment: numba-cuda takes the place of numba's own CUDA target by a .pth file, which PYTHONPATH does not read.
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check numba-cuda==0.30.4 numba==0.68.1 \
  numba-cuda-mlir==0.6.0 nvidia-cuda-nvrtc==13.5.37 nvidia-nvvm==13.5.37 nvidia-nvjitlink==13.5.37

cat >"$work/subtract.py" <<'PYTHON'
import re
import sys
from importlib.metadata import version

if sys.argv[1] == "numba-cuda":
    from numba import cuda
else:
    import numba_cuda_mlir.tools
    from numba_cuda_mlir import cuda

    numba_cuda_mlir.tools._cached_cc = (9, 0)  # which it would ask a driver for

def subtract(output, source):
    cuda.atomic.sub(output, 0, source[cuda.grid(1)])

def add_negative(output, source):
    cuda.atomic.add(output, 0, -source[cuda.grid(1)])

print(sys.argv[1], version(sys.argv[1]))
for kernel in subtract, add_negative:
    for dtype in "int32", "float32", "float64":
        ptx, _ = cuda.compile_ptx(kernel, f"void({dtype}[::1], {dtype}[::1])", cc=(9, 0))
        print(f"{kernel.__name__} {dtype}:", *re.findall(r"\b(?:atom\S+|ld\.volatile\S+)", ptx))
PYTHON
for package in numba-cuda numba-cuda-mlir; do
  "$work/venv/bin/python" -W ignore "$work/subtract.py" "$package"
done | tee "$work/seen"

expected='numba-cuda 0.30.4
subtract int32: atom.global.add.u32
subtract float32: ld.volatile.global.u32 atom.global.cas.b32
subtract float64: ld.volatile.global.u64 atom.global.cas.b64
add_negative int32: atom.global.add.u32
add_negative float32: atom.global.add.f32
add_negative float64: atom.global.add.f64
numba-cuda-mlir 0.6.0
subtract int32: atom.global.add.u32
subtract float32: atom.global.add.f32
subtract float64: atom.global.add.f64
add_negative int32: atom.global.add.u32
add_negative float32: atom.global.add.f32
add_negative float64: atom.global.add.f64'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
