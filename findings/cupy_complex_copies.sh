#!/usr/bin/env bash
# Guess: `output[i] = source[i]` of complex64 in a RawKernel of CuPy is one access of 8 bytes. Its complex<float> has an
# alignment of 8, as cuComplex of CUDA and cutlass::complex<float> have.
# What happens: CuPy's operator= assigns real and imaginary part: two loads and two stores of 4 bytes. Through a variable,
# or in a product, it is one load of 8. CUTLASS's complex number is aligned to 4 and is always two accesses.
# Version: headers of CuPy 14.2.0 (cupy-cuda13x) and CUTLASS 4.2.0.0 (nvidia-cutlass), nvcc and nvdisasm 13.5.37, sm_90.
# Why it matters: of each access the lanes lie 8 bytes apart, so it asks for 8 sectors and uses half of each. A benchmark
# that copies measures other accesses than a kernel that computes. For complex128 they are two of 8.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 \
  cupy-cuda13x==14.2.0 nvidia-cutlass==4.2.0.0
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cuh" <<'CUDA'
#define KERNELS(NAME, COMPLEX) \
  extern "C" __global__ void copy_##NAME(COMPLEX *output, const COMPLEX *source) { \
    output[threadIdx.x] = source[threadIdx.x]; \
  } \
  extern "C" __global__ void product_##NAME(COMPLEX *output, const COMPLEX *source) { \
    const COMPLEX value = source[threadIdx.x]; \
    output[threadIdx.x] = PRODUCT(value, value); \
  }
CUDA
cat >"$work/cuda.cu" <<'CUDA'
#include "kernels.cuh"
#include <cuComplex.h>
#define PRODUCT cuCmulf
KERNELS(cuda_64, cuComplex)
CUDA
cat >"$work/cupy.cu" <<'CUDA'
#include "kernels.cuh"
#include <cupy/complex.cuh>
#define PRODUCT(LEFT, RIGHT) (LEFT) * (RIGHT)
static_assert(alignof(complex<float>) == 8);
KERNELS(cupy_64, complex<float>)
KERNELS(cupy_128, complex<double>)
CUDA
cat >"$work/cutlass.cu" <<'CUDA'
#include "kernels.cuh"
#include <cutlass/complex.h>
#define PRODUCT(LEFT, RIGHT) (LEFT) * (RIGHT)
static_assert(alignof(cutlass::complex<float>) == 4);
KERNELS(cutlass_64, cutlass::complex<float>)
CUDA

for kernel in copy_cuda_64 product_cuda_64 copy_cupy_64 product_cupy_64 copy_cupy_128 product_cupy_128 \
  copy_cutlass_64 product_cutlass_64; do
  library=$(echo "$kernel" | cut -d _ -f 2)
  [ -e "$work/$library.cubin" ] || nvcc -cubin -arch=sm_90 -std=c++17 -I "$work/packages/cupy/_core/include" \
    -I "$work/packages/cutlass_library/source/include" -I "$work/packages/nvidia/cu13/include/cccl" \
    "$work/$library.cu" -o "$work/$library.cubin"
  nvdisasm -c "$work/$library.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
    grep -oE '(LDG|STG)[.A-Z0-9]*' | sort | uniq -c |
    awk -v name="$kernel:" '{ name = name " " $1 " " $2 } END { print name }'
done | tee "$work/seen"

expected='copy_cuda_64: 1 LDG.E.64 1 STG.E.64
product_cuda_64: 1 LDG.E.64 1 STG.E.64
copy_cupy_64: 2 LDG.E 2 STG.E
product_cupy_64: 1 LDG.E.64 1 STG.E.64
copy_cupy_128: 2 LDG.E.64 2 STG.E.64
product_cupy_128: 1 LDG.E.128 1 STG.E.128
copy_cutlass_64: 2 LDG.E 2 STG.E
product_cutlass_64: 2 LDG.E 2 STG.E'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
