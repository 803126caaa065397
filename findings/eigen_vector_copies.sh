#!/usr/bin/env bash
# Guess: an Eigen::Vector4f, which Eigen aligns to 16 bytes as "fixed-size vectorizable", is one access of 16 bytes in a
# kernel, as a float4. So are a Quaternionf and a Map with Aligned16.
# What happens: an assignment moves single floats: four loads and four stores of 4 bytes, 16 bytes apart. __restrict__
# changes nothing, nor does Aligned16. Only a local copy of the object itself is loaded at once, by its constructor. Its
# assignment back is four stores all the same.
# Version: Eigen 3.4.1 (cmeel-eigen), nvcc and nvdisasm 13.5.37, sm_90. Seen on 30 November 2026.
# Why it matters: a warp's assignment makes 4 requests of 16 sectors each way, and float4 makes one. A matrix times a
# vector loads 20 single floats, 16 of them 64 bytes apart: each request touches 32 sectors.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 \
  cmeel-eigen==3.4.1
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <Eigen/Core>
#include <Eigen/Geometry>
using namespace Eigen;
static_assert(alignof(Vector4f) == 16 && alignof(Quaternionf) == 16 && alignof(Matrix4f) == 16);

#define KERNEL(NAME, TYPE, ...) extern "C" __global__ void NAME(TYPE *output, const TYPE *source) \
  { output += threadIdx.x; source += threadIdx.x; __VA_ARGS__; }
KERNEL(assigned_float4, float4, *output = *source)
KERNEL(assigned, Vector4f, *output = *source)
KERNEL(scaled, Vector4f, *output = 2 * *source)
KERNEL(added, Vector4f, *output += *source)
KERNEL(local, Vector4f, Vector4f value = *source; *output = value)
KERNEL(local_quaternion, Quaternionf, Quaternionf value = *source; *output = value)
KERNEL(local_matrix, Matrix4f, Matrix4f value = *source; *output = value)
extern "C" __global__ void assigned_restrict(Vector4f *__restrict__ output, const Vector4f *__restrict__ source) {
  output[threadIdx.x] = source[threadIdx.x];
}
extern "C" __global__ void mapped(float *output, const float *source) {
  Map<Vector4f, Aligned16> target(output + 4 * threadIdx.x);
  target = Map<const Vector4f, Aligned16>(source + 4 * threadIdx.x);
}
extern "C" __global__ void multiplied(Vector4f *output, const Matrix4f *matrices, const Vector4f *source) {
  output[threadIdx.x] = matrices[threadIdx.x] * source[threadIdx.x];
}
CUDA

nvcc -cubin -arch=sm_90 -std=c++17 -w --expt-relaxed-constexpr -I "$work/packages/nvidia/cu13/include/cccl" \
  -I "$work/packages/cmeel.prefix/include/eigen3" "$work/kernels.cu" -o "$work/kernels.cubin"
for kernel in assigned_float4 assigned assigned_restrict scaled added mapped local local_quaternion local_matrix multiplied; do
  nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/EXIT/p" |
    grep -oE '(LDG|STG)[.A-Z0-9]*' | sort | uniq -c |
    awk -v name="$kernel:" '{ name = name " " $1 " " $2 } END { print name }'
done | tee "$work/seen"

expected='assigned_float4: 1 LDG.E.128 1 STG.E.128
assigned: 4 LDG.E 4 STG.E
assigned_restrict: 4 LDG.E.CONSTANT 4 STG.E
scaled: 4 LDG.E 4 STG.E
added: 8 LDG.E 4 STG.E
mapped: 4 LDG.E 4 STG.E
local: 1 LDG.E.128 4 STG.E
local_quaternion: 1 LDG.E.128 4 STG.E
local_matrix: 4 LDG.E.128 16 STG.E
multiplied: 20 LDG.E 4 STG.E'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
