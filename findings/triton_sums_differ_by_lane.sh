#!/usr/bin/env bash
# Guess: all lanes of a warp end a sum of Triton with the same bits, as each step adds the same two numbers.
# What happens: `tl.sum(x * y, 0)` begins with `fma(x, y, the partner's product)`. A lane's own product is exact there,
# and its partner's is rounded, so two lanes may end with sums that differ in the last bit. Without fusion they are
# equal.
# Version: Triton 3.9.0, a target of sm_90, which needs no GPU.
# Why it matters: each lane then stores "the" sum to one place of shared memory. The last bits depend on the lane that
# comes last, and a checker of races reports different values.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" triton==3.9.0 numpy==2.4.6
export PYTHONPATH="$work/packages" TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/sum_kernel.py" <<'PYTHON'
import re
from fractions import Fraction

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def dot(output, left, right):
    lane = tl.arange(0, 32)
    total = tl.sum(tl.load(left + lane) * tl.load(right + lane), 0)
    tl.store(output + lane, tl.zeros((32,), tl.float32) + total)

def describe_first_step(fusion):
    """Return the instruction that uses the result of the first shuffle."""
    source = ASTSource(fn=dot, signature={"output": "*fp32", "left": "*fp32", "right": "*fp32"})
    options = {"num_warps": 1, "enable_fp_fusion": fusion}
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]
    result = re.search(r"shfl\.sync\.bfly\.b32\s+(%r\d+), %r\d+, 16", ptx)[1]
    return re.search(rf"\S+ .*, {result};", ptx)[0].split()[0]

def add_step(x, y, partner):
    """Round once, as fma does: the exact product and the partner's rounded one."""
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(partner))
    return np.float32(exact.numerator / exact.denominator)

print("triton", triton.__version__)
print("with fusion:", describe_first_step(True), "without:", describe_first_step(False))
a, b, c, d = np.random.default_rng(0).normal(size=(4, 1000)).astype(np.float32)
sums = [(add_step(*pair[:2], pair[2] * pair[3]), add_step(pair[2], pair[3], pair[0] * pair[1])) for pair in zip(a, b, c, d)]
print("pairs of lanes whose sums differ:", sum(one != other for one, other in sums) > 0)
PYTHON
python3 "$work/sum_kernel.py" | tee "$work/seen"

expected='triton 3.9.0
with fusion: fma.rn.f32 without: add.rn.f32
pairs of lanes whose sums differ: True'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
