#!/usr/bin/env bash
# Guess: with TRITON_INTERPRET=1 `x.to(tl.bfloat16)` and `x.to(tl.float8e4nv)` of float32 round to nearest, as the
# compiled kernel and PyTorch do.
# What happens: bfloat16 is truncated: 0.1 becomes 0.0996 where 0.1001 is nearest. In float8 numbers that round up to
# a power of two may keep the old exponent: 7.9 becomes 4, and 120 becomes 64 in float8e5. NaN becomes 384 in float8e4nv
# and 98304 in float8e5. float16 is right. Compiled for sm_90 all are a cvt.rn instruction.
# Version: Triton 3.9.0, executed on the CPU, and compiled for sm_90, which needs no GPU. Seen on 30 November 2026.
# Why it matters: kernels that quantize are tested this way where there is no GPU, and give results of half the size, or
# hide NaN. Errors of bfloat16 are twice as large as a GPU's, all in one direction.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
# PyTorch keeps the tensors: a build for the CPU is enough.
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check triton==3.9.0 torch==2.13.0 numpy==2.4.6
export TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/casts.py" <<'PYTHON'
import os
import re

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TYPES = {
    tl.bfloat16: torch.bfloat16, tl.float16: torch.float16,
    tl.float8e4nv: torch.float8_e4m3fn, tl.float8e5: torch.float8_e5m2,
}
SOURCE = torch.tensor([0.1, 1.005859375, 1.99, 7.9, 120.0, 250.0, 440.0, float("nan")])

@triton.jit
def cast(output, source, DTYPE: tl.constexpr):
    i = tl.arange(0, 8)
    tl.store(output + i, tl.load(source + i).to(DTYPE).to(tl.float32))

def describe(numbers):
    return " ".join(f"{number:.5g}" for number in numbers.tolist())

for dtype, torch_dtype in TYPES.items():
    if "TRITON_INTERPRET" in os.environ:
        output = torch.zeros(8)
        cast[(1,)](output, SOURCE, dtype)
        print(f"{dtype} interpreted: {describe(output)}")
        print(f"{dtype} by PyTorch: {describe(SOURCE.to(torch_dtype).float())}")
    else:
        kernel = ASTSource(cast, {"output": "*fp32", "source": "*fp32", "DTYPE": "constexpr"}, {(2,): dtype})
        ptx = triton.compile(kernel, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
        print(f"{dtype} compiled:", re.search(r"cvt\.rn\S+", ptx)[0])
PYTHON
{
  "$work/venv/bin/python" -c 'import triton; print("triton", triton.__version__)'
  "$work/venv/bin/python" -W ignore "$work/casts.py"
  TRITON_INTERPRET=1 "$work/venv/bin/python" -W ignore "$work/casts.py"
} | tee "$work/seen"

expected='triton 3.9.0
bf16 compiled: cvt.rn.bf16.f32
fp16 compiled: cvt.rn.f16.f32
fp8e4nv compiled: cvt.rn.satfinite.e4m3x2.f32
fp8e5 compiled: cvt.rn.satfinite.e5m2x2.f32
bf16 interpreted: 0.099609 1 1.9844 7.875 120 250 440 nan
bf16 by PyTorch: 0.1001 1.0078 1.9922 7.9062 120 250 440 nan
fp16 interpreted: 0.099976 1.0059 1.9902 7.8984 120 250 440 nan
fp16 by PyTorch: 0.099976 1.0059 1.9902 7.8984 120 250 440 nan
fp8e4nv interpreted: 0.10156 1 1 4 120 256 448 384
fp8e4nv by PyTorch: 0.10156 1 2 8 120 256 448 nan
fp8e5 interpreted: 0.09375 1 1 4 64 256 448 98304
fp8e5 by PyTorch: 0.09375 1 2 8 128 256 448 nan'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
