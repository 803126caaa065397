#!/usr/bin/env bash
# Guess: cuda::std::copy() and thrust::copy(thrust::seq, ...) in a kernel access whole elements, as a loop does: 4 bytes
# for a float, 16 for a float4.
# What happens: one byte at a time. Two floats are 8 loads and 8 stores, and two float4 32 and 32. Both call memmove() for
# types that can be copied bytewise, so the code stands there twice, for each direction. A loop takes 2 and 2, and
# cuda::std::transform() with cuda::std::identity as well.
# Version: libcu++ and Thrust of nvidia-cuda-cccl 13.3.5.0.6, nvcc and nvdisasm 13.5.37, sm_90.
# Why it matters: a warp whose threads copy a float4 each asks 16 times for each of 16 sectors: 256 instead of 16. The
# source shows neither a byte nor memcpy().
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cuda/std/algorithm>
#include <cuda/std/complex>
#include <cuda/std/functional>
#include <thrust/copy.h>
#include <thrust/execution_policy.h>

#define KERNEL(NAME, ELEMENT, COPY) extern "C" __global__ void NAME(ELEMENT *output, const ELEMENT *source) \
  { output += 2 * threadIdx.x; source += 2 * threadIdx.x; COPY; }

KERNEL(loop, float, for (int i = 0; i < 2; i++) output[i] = source[i])
KERNEL(transform, float, cuda::std::transform(source, source + 2, output, cuda::std::identity()))
KERNEL(copy, float, cuda::std::copy(source, source + 2, output))
KERNEL(copy_n, float, cuda::std::copy_n(source, 2, output))
KERNEL(copy_n_float4, float4, cuda::std::copy_n(source, 2, output))
KERNEL(copy_n_complex, cuda::std::complex<float>, cuda::std::copy_n(source, 2, output))
KERNEL(thrust_copy, float, thrust::copy(thrust::seq, source, source + 2, output))

extern "C" __global__ void to_registers(float *output, const float *source) {
  float values[2];
  cuda::std::copy_n(source + 2 * threadIdx.x, 2, values);
  output[threadIdx.x] = values[0] * values[1];
}
CUDA

nvcc -cubin -arch=sm_90 -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$work/kernels.cu" -o "$work/kernels.cubin"
echo 'accesses of both branches, forwards and backwards:' | tee "$work/seen"
for kernel in loop transform copy copy_n copy_n_float4 copy_n_complex thrust_copy to_registers; do
  nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
    grep -oE '(LDG|STG)[.A-Z0-9]*' | sort | uniq -c |
    awk -v name="$kernel:" '{ name = name " " $1 " " $2 } END { print name }'
done | tee -a "$work/seen"

expected='accesses of both branches, forwards and backwards:
loop: 2 LDG.E 2 STG.E
transform: 2 LDG.E 2 STG.E
copy: 16 LDG.E.U8 16 STG.E.U8
copy_n: 16 LDG.E.U8 16 STG.E.U8
copy_n_float4: 64 LDG.E.U8 64 STG.E.U8
copy_n_complex: 32 LDG.E.U8 32 STG.E.U8
thrust_copy: 16 LDG.E.U8 16 STG.E.U8
to_registers: 8 LDG.E.U8 1 STG.E'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
