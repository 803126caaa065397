#!/usr/bin/env bash
# Guess: an unrolled loop over the array in an aligned struct of 16 bytes makes one access of 16
# bytes. Elements that are written out one by one do.
# What happens: the loop makes one access an element, 16 bytes apart between lanes. nvcc takes the
# alignment of source[i].x[2] from the constant index. A variable index leaves the element's
# alignment, and unrolling comes later. The operator [] of cuda::std::array has a variable index,
# too. Halves, written out, are one load for sm_100 alone. A copy of the struct to a local variable
# is one access in any case.
# Version: nvcc, nvdisasm and the headers of CUDA 13.5.37, sm_90 and sm_100.
# Why it matters: the shorter way to write a kernel takes 4 times the requests and sectors for
# floats. For halves it takes 8 times. alignas(16) and #pragma unroll do not help.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cuda/std/array>
#include <cuda_fp16.h>

struct alignas(16) Floats {
  float x[4];
};
struct alignas(16) StdFloats {
  cuda::std::array<float, 4> x;
};
struct alignas(16) Halves {
  __half x[8];
};
#define KERNEL(NAME, TYPE) extern "C" __global__ void NAME(float *output, TYPE *source)
#define I threadIdx.x

KERNEL(floats_written_out, Floats) {
  output[I] = source[I].x[0] + 2 * source[I].x[1] + 3 * source[I].x[2] + 4 * source[I].x[3];
}
KERNEL(floats_unrolled, Floats) {
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) sum += (k + 1) * source[I].x[k];
  output[I] = sum;
}
KERNEL(floats_copied_unrolled, Floats) {
  Floats floats = source[I];
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) sum += (k + 1) * floats.x[k];
  output[I] = sum;
}
KERNEL(std_floats_written_out, StdFloats) {
  output[I] = source[I].x[0] + 2 * source[I].x[1] + 3 * source[I].x[2] + 4 * source[I].x[3];
}
KERNEL(stores_written_out, Floats) {
  float value = output[I];
  source[I].x[0] = value, source[I].x[1] = 2 * value, source[I].x[2] = 3 * value, source[I].x[3] = 4 * value;
}
KERNEL(stores_unrolled, Floats) {
  float value = output[I];
#pragma unroll
  for (int k = 0; k < 4; k++) source[I].x[k] = (k + 1) * value;
}
#define ADD(K) sum = 2 * sum + __half2float(source[I].x[K])
KERNEL(halves_written_out, Halves) {
  float sum = 0;
  ADD(0), ADD(1), ADD(2), ADD(3), ADD(4), ADD(5), ADD(6), ADD(7);
  output[I] = sum;
}
KERNEL(halves_unrolled, Halves) {
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 8; k++) ADD(k);
  output[I] = sum;
}
CUDA

for arch in sm_90 sm_100; do
  nvcc -cubin -arch=$arch -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$work/kernels.cu" -o "$work/kernels.cubin"
  for kernel in floats_{written_out,unrolled,copied_unrolled} std_floats_written_out stores_{written_out,unrolled} \
    halves_{written_out,unrolled}; do
    nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\//p" |
      grep -oE '\<(LDG|STG)[.A-Z0-9]*' | sort | uniq -c |
      awk -v name="$arch $kernel:" '{ name = name " " $1 " " $2 } END { print name }'
  done
done | tee "$work/seen"

expected='sm_90 floats_written_out: 1 LDG.E.128 1 STG.E
sm_90 floats_unrolled: 4 LDG.E 1 STG.E
sm_90 floats_copied_unrolled: 1 LDG.E.128 1 STG.E
sm_90 std_floats_written_out: 4 LDG.E 1 STG.E
sm_90 stores_written_out: 1 LDG.E 1 STG.E.128
sm_90 stores_unrolled: 1 LDG.E 4 STG.E
sm_90 halves_written_out: 8 LDG.E.U16 1 STG.E
sm_90 halves_unrolled: 8 LDG.E.U16 1 STG.E
sm_100 floats_written_out: 1 LDG.E.128 1 STG.E
sm_100 floats_unrolled: 4 LDG.E 1 STG.E
sm_100 floats_copied_unrolled: 1 LDG.E.128 1 STG.E
sm_100 std_floats_written_out: 4 LDG.E 1 STG.E
sm_100 stores_written_out: 1 LDG.E 1 STG.E.128
sm_100 stores_unrolled: 1 LDG.E 4 STG.E
sm_100 halves_written_out: 1 LDG.E.128 1 STG.E
sm_100 halves_unrolled: 8 LDG.E.U16 1 STG.E'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
