#!/usr/bin/env bash
# Guess, written after a first suspicion: np.dtype(..., align=True) lays a record out as nvcc lays out the struct of the
# same members, for complex numbers, too.
# What happens: NumPy aligns complex64 to 4 bytes and complex128 to 8, as std::complex is. CUDA aligns its complex types
# to their size: cuFloatComplex and cuda::std::complex<float> to 8, those of double to 16. So a complex64 after a
# float32 is at byte 4 of 12 for NumPy, and at byte 8 of 16 for the kernel. Without complex members both agree.
# Version: NumPy 2.4.6, nvcc 13.5.37, libcu++ and Thrust of nvidia-cuda-cccl 13.3.5.0.6.
# Why it matters: an array of such records, copied to a GPU as it is, gives a kernel other numbers. Sizes that are taken
# from NumPy give wrong sectors: 24 bytes a record are 32. std::complex and cuda::std::complex differ in the same way.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 \
  nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 numpy==2.4.6
export PATH="$work/packages/nvidia/cu13/bin:$PATH" PYTHONPATH="$work/packages"
nvcc --version | grep release

cat >"$work/structs.cu" <<'CUDA'
#include <complex>
#include <cstddef>
#include <cuComplex.h>
#include <cuda/std/complex>
#include <thrust/complex.h>

template <class First, class Second> struct Pair { First first; Second second; };

template <class Struct> __device__ constexpr int offset_and_size = offsetof(Struct, second) * 100 + sizeof(Struct);

#define SHOW(NAME, ...) extern "C" __device__ const int NAME = offset_and_size<Pair<__VA_ARGS__>>;
SHOW(int8_float64_double, signed char, double)
SHOW(float32_complex64_cuFloatComplex, float, cuFloatComplex)
SHOW(float32_complex64_cuda_std, float, cuda::std::complex<float>)
SHOW(float32_complex64_thrust, float, thrust::complex<float>)
SHOW(float32_complex64_host_std, float, std::complex<float>)
SHOW(float64_complex128_cuDoubleComplex, double, cuDoubleComplex)
SHOW(float64_complex128_cuda_std, double, cuda::std::complex<double>)
SHOW(float64_complex128_host_std, double, std::complex<double>)
CUDA

cat >"$work/compare_layouts.py" <<'PYTHON'
import re
import sys
from pathlib import Path

import numpy as np

print("numpy", np.__version__)
constants = re.findall(r" ((?:int|float)\d+)_([a-z]+\d+)_(\w+) = (\d+);", Path(sys.argv[1]).read_text())
for first, second, library, both in constants:
    record = np.dtype([("first", first), ("second", second)], align=True)
    offset, size = divmod(int(both), 100)
    print(f"{first}, {second}: NumPy byte {record.fields['second'][1]} of {record.itemsize};", end=" ")
    print(f"{library} byte {offset} of {size}")
PYTHON
nvcc -ptx -arch=sm_90 -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$work/structs.cu" -o "$work/structs.ptx"
python3 "$work/compare_layouts.py" "$work/structs.ptx" | tee "$work/seen"

expected='numpy 2.4.6
int8, float64: NumPy byte 8 of 16; double byte 8 of 16
float32, complex64: NumPy byte 4 of 12; cuFloatComplex byte 8 of 16
float32, complex64: NumPy byte 4 of 12; cuda_std byte 8 of 16
float32, complex64: NumPy byte 4 of 12; thrust byte 8 of 16
float32, complex64: NumPy byte 4 of 12; host_std byte 4 of 12
float64, complex128: NumPy byte 8 of 24; cuDoubleComplex byte 16 of 32
float64, complex128: NumPy byte 8 of 24; cuda_std byte 16 of 32
float64, complex128: NumPy byte 8 of 24; host_std byte 8 of 24'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
