#!/usr/bin/env bash
# Guess: with NUMBA_ENABLE_CUDASIM=1 a kernel's integers and bits are those of the compiled kernel, or an error is
# raised.
# What happens: the simulator's clz() and ffs() write out 32 bits of a longer number: clz(int64(1)) is 31, and the first
# bit of 2**40 is number 8. popc() of a negative number counts the bits of its absolute value. fp16.hfloor() rounds up.
# Numbers are NumPy's: sums and products of int32 or uint8 wrap there. Compiled, they have 64 bits.
# Version: numba-cuda 0.30.4, numba 0.68.1, NVVM 13.5.37, which folds the constants for sm_90. Seen on 1 December 2026.
# Why it matters: tests without a GPU run the simulator. There popc() of a mask of all lanes is 1, not 32, and `row *
# pitch` of two int32 wraps: the elements that are read, and counted, are others.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An environment: numba-cuda takes the place of numba's own CUDA target by a .pth file, which PYTHONPATH does not read.
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check \
  numba-cuda==0.30.4 numba==0.68.1 nvidia-cuda-nvrtc==13.5.37 nvidia-nvvm==13.5.37

cat >"$work/bits.py" <<'PYTHON'
import re

import numba
import numba_cuda
import numpy as np
from numba import cuda

EXPRESSIONS = (
    "cuda.clz(np.int32(1))", "cuda.clz(np.int64(1))", "cuda.clz(np.int64(2**40))", "cuda.ffs(np.int64(2**40))",
    "cuda.popc(np.int32(-1))", "cuda.popc(np.int64(-2))", "np.int32(2**16) * np.int32(2**16)",
    "np.int32(2**31 - 1) + np.int32(1)", "np.uint8(200) + np.uint8(100)",
)

def evaluate(expression):
    """Return the number that a kernel stores."""
    names = {"np": np, "cuda": cuda}
    exec(f"def store(output):\n    output[0] = {expression}", names)
    if numba.config.ENABLE_CUDASIM:
        output = np.zeros(1, np.int64)
        cuda.jit(names["store"])[1, 1](output)
        return output[0]
    ptx, _ = cuda.compile_ptx(names["store"], (numba.int64[::1],), cc=(9, 0))
    return re.search(r"mov\.\w+\s+%\w+, (-?\d+);\s+st\.global", ptx)[1]

if numba.config.ENABLE_CUDASIM:
    half = np.zeros(1, np.float16)

    @cuda.jit
    def floor(output, number):
        output[0] = cuda.fp16.hfloor(number)

    floor[1, 1](half, np.float16(1.5))
    print("simulated: fp16.hfloor(1.5) is", half[0])
else:
    print("numba-cuda", numba_cuda.__version__, "numba", numba.__version__)
print("simulated:" if numba.config.ENABLE_CUDASIM else "compiled:", *map(evaluate, EXPRESSIONS))
PYTHON
for simulated in 0 1; do
  NUMBA_ENABLE_CUDASIM=$simulated "$work/venv/bin/python" -W ignore "$work/bits.py"
done | tee "$work/seen"

expected='numba-cuda 0.30.4 numba 0.68.1
compiled: 31 63 23 41 32 63 4294967296 2147483648 300
simulated: fp16.hfloor(1.5) is 2.0
simulated: 31 31 0 8 1 1 0 -2147483648 44'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
