#!/usr/bin/env bash
# Guess: ml_dtypes and NVIDIA's own header convert numbers to the formats of block-scaled matrices in the same way. Zero
# is the smallest scale of float8_e8m0fnu, and NaN becomes one of float4_e2m1fn's numbers, whichever, in both alike.
# What happens: ml_dtypes makes NaN of the scale 0, and of negative scales; CUDA makes the smallest scale of 0, and
# takes absolute values. For float4 ml_dtypes makes -0 of NaN and +0 of -NaN; CUDA makes +6 of both.
# Version: ml_dtypes 0.6.0; cuda_fp4.h and cuda_fp8.h of nvidia-cuda-runtime 13.5.37, on the host. It needs g++.
# Why it matters: in a check of a GPU's output against NumPy, a block of zeros is NaN in the reference alone. A NaN in
# the input becomes a number in both, but not the same one: 0 or -0 against 6.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" ml_dtypes==0.6.0 numpy==2.2.6
python3 -m pip install -qq --no-deps --target "$work/headers" \
  nvidia-cuda-runtime==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
include="$work/headers/nvidia/cu13/include"

cat >"$work/convert.cpp" <<'CPP'
#include <cmath>
#include <cstdio>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

int main() {
    std::printf("CUDA float4:");
    for (float value : {NAN, -NAN, 100.f})
        std::printf(" 0x%02x", unsigned(__nv_cvt_float_to_fp4(value, __NV_E2M1, cudaRoundNearest)));
    std::printf("\nCUDA e8m0:");
    for (float value : {0.f, -2.f, 4.f})
        std::printf(" 0x%02x", unsigned(__nv_cvt_float_to_e8m0(value, __NV_SATFINITE, cudaRoundZero)));
    std::printf("\n");
}
CPP
g++ -I"$include" -I"$include/cccl" "$work/convert.cpp" -o "$work/convert"

cat >"$work/convert.py" <<'PYTHON'
import ml_dtypes
import numpy as np

def convert(label, target, *values):
    codes = np.array(values, np.float32).astype(target).view(np.uint8)
    print(f"ml_dtypes {label}:", *(f"0x{code:02x}" for code in codes))

convert("float4", ml_dtypes.float4_e2m1fn, np.nan, -np.nan, 100)
convert("e8m0", ml_dtypes.float8_e8m0fnu, 0, -2, 4)
PYTHON
{ PYTHONPATH="$work/packages" python3 "$work/convert.py"; "$work/convert"; } | tee "$work/seen"

# Inputs: NaN, -NaN, 100 for float4; 0, -2, 4 for e8m0. 0x7 is 6, 0x8 is -0; 0xff is NaN, 0x00 is 2**-127.
expected='ml_dtypes float4: 0x08 0x00 0x07
ml_dtypes e8m0: 0xff 0xff 0x81
CUDA float4: 0x07 0x07 0x07
CUDA e8m0: 0x00 0x80 0x81'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
