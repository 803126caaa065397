#!/usr/bin/env bash
# Guess: memcpy() of 16 bytes is one load from a `const float4 *` and four from a `const float *`. A pointer to T is a
# multiple of T's alignment, and nvcc removes the call.
# What happens: 16 loads of one byte from either, in PTX and in machine code, and 16 stores for the other direction.
# An `unsigned` copied from a `const float *` takes four. bit_cast() and __builtin_assume_aligned() make one.
# memcpy() from a variable in registers costs nothing.
# Version: nvcc, nvdisasm and the headers of CUDA 13.5.37, sm_90 and sm_100.
# Why it matters: memcpy() is the way to read a value as another type without breaking the rules of aliasing. A warp
# that copies 32 float4 makes 16 requests, each of which touches all 16 sectors: 256 instead of 16.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cuda/std/bit>

#define KERNEL(NAME, OUTPUT, SOURCE) extern "C" __global__ void NAME(OUTPUT *output, const SOURCE *source)

KERNEL(memcpy_from_float4, float4, float4) {
  float4 value;
  memcpy(&value, source + threadIdx.x, sizeof value);
  output[threadIdx.x] = value;
}

KERNEL(memcpy_from_float, float4, float) {
  float4 value;
  memcpy(&value, source + 4 * threadIdx.x, sizeof value);
  output[threadIdx.x] = value;
}

KERNEL(memcpy_to_float4, float4, float4) {
  float4 value = source[threadIdx.x];
  memcpy(output + threadIdx.x, &value, sizeof value);
}

KERNEL(memcpy_to_unsigned, unsigned, float) {
  unsigned value;
  memcpy(&value, source + threadIdx.x, sizeof value);
  output[threadIdx.x] = value;
}

KERNEL(assume_aligned, float4, float4) {
  float4 value;
  memcpy(&value, __builtin_assume_aligned(source + threadIdx.x, 16), sizeof value);
  output[threadIdx.x] = value;
}

KERNEL(bit_cast, uint4, float4) { output[threadIdx.x] = cuda::std::bit_cast<uint4>(source[threadIdx.x]); }
CUDA

for arch in sm_90 sm_100; do
  nvcc -cubin -arch=$arch -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$work/kernels.cu" -o "$work/kernels.cubin"
  for kernel in memcpy_from_float4 memcpy_from_float memcpy_to_float4 memcpy_to_unsigned assume_aligned bit_cast; do
    nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/EXIT/p" |
      grep -oE '(LDG|STG)[.A-Z0-9]*' | sort | uniq -c |
      awk -v name="$arch $kernel:" '{ name = name " " $1 " " $2 } END { print name }'
  done
done | tee "$work/seen"

expected=$(for arch in sm_90 sm_100; do
  echo "$arch memcpy_from_float4: 16 LDG.E.U8 1 STG.E.128
$arch memcpy_from_float: 16 LDG.E.U8 1 STG.E.128
$arch memcpy_to_float4: 1 LDG.E.128 16 STG.E.U8
$arch memcpy_to_unsigned: 4 LDG.E.U8 1 STG.E
$arch assume_aligned: 1 LDG.E.128 1 STG.E.128
$arch bit_cast: 1 LDG.E.128 1 STG.E.128"
done)
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
