#!/usr/bin/env bash
# Guess: with GLM_FORCE_DEFAULT_ALIGNED_GENTYPES a glm::vec4 is aligned to 16 bytes, as GLM's manual says. A struct of
# vectors has one layout in the .cpp and the .cu files of a program, and a kernel copies a vec4 with one access.
# What happens: in a .cu file the definition changes nothing, with and without GLM_FORCE_INTRINSICS. With both the
# manual's struct has 48 bytes in a .cpp file and 32 in a .cu file: its member c is at byte 32 or 20. No compiler warns.
# A kernel copies a vec4, a mat4 or a quaternion by single floats.
# Version: GLM 1.0.2 as gsplat 1.5.3 brings it, nvcc and nvdisasm 13.5.37, sm_90, GCC. Seen on 30 November 2026.
# Why it matters: a kernel reads an array that the host filled at other bytes, without an error. Where layouts agree, a
# vec4 takes four times the requests of a float4.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 gsplat==1.5.3
PATH="$work/packages/nvidia/cu13/bin:$PATH"
glm=packages/gsplat/cuda/csrc/third_party/glm
nvcc --version | grep release

cat >layout.cpp <<'CPP'
#include <cstddef>
#include <cstdio>
#include <glm/glm.hpp>

struct manual { glm::vec4 a; float b; glm::vec3 c; };

int main() {
  std::printf("alignment %zu, %zu bytes, c at byte %zu\n", alignof(glm::vec4), sizeof(manual), offsetof(manual, c));
}
CPP
cp layout.cpp layout.cu
cat >kernels.cu <<'CUDA'
#include <glm/glm.hpp>
#include <glm/gtc/quaternion.hpp>

#define KERNEL(NAME, TYPE) extern "C" __global__ void NAME(TYPE *output, const TYPE *source) \
  { output[threadIdx.x] = source[threadIdx.x]; }
KERNEL(copy_float4, float4)
KERNEL(copy_vec2, glm::vec2)
KERNEL(copy_vec4, glm::vec4)
KERNEL(copy_quat, glm::quat)
KERNEL(copy_mat4, glm::mat4)
CUDA

{
  for definitions in '' '-DGLM_FORCE_DEFAULT_ALIGNED_GENTYPES' \
    '-DGLM_FORCE_DEFAULT_ALIGNED_GENTYPES -DGLM_FORCE_INTRINSICS'; do
    g++ -w -I $glm $definitions layout.cpp -o host
    nvcc -w -arch=sm_90 -I packages/nvidia/cu13/include/cccl -I $glm $definitions layout.cu -L packages/nvidia/cu13/lib -o device
    echo "$definitions"
    echo "  .cpp: $(./host)"
    echo "  .cu: $(./device)"
  done
  nvcc -w -cubin -arch=sm_90 -I packages/nvidia/cu13/include/cccl -I $glm $definitions kernels.cu -o kernels.cubin
  for kernel in copy_float4 copy_vec2 copy_vec4 copy_quat copy_mat4; do
    nvdisasm -c kernels.cubin | sed -n "/^\.text\.$kernel:/,/EXIT/p" | grep -oE '(LDG|STG)[.A-Z0-9]*' | sort | uniq -c |
      awk -v name="$kernel:" '{ name = name " " $1 " " $2 } END { print name }'
  done
} | tee seen

expected='
  .cpp: alignment 4, 32 bytes, c at byte 20
  .cu: alignment 4, 32 bytes, c at byte 20
-DGLM_FORCE_DEFAULT_ALIGNED_GENTYPES
  .cpp: alignment 4, 32 bytes, c at byte 20
  .cu: alignment 4, 32 bytes, c at byte 20
-DGLM_FORCE_DEFAULT_ALIGNED_GENTYPES -DGLM_FORCE_INTRINSICS
  .cpp: alignment 16, 48 bytes, c at byte 32
  .cu: alignment 4, 32 bytes, c at byte 20
copy_float4: 1 LDG.E.128 1 STG.E.128
copy_vec2: 2 LDG.E 2 STG.E
copy_vec4: 4 LDG.E 4 STG.E
copy_quat: 4 LDG.E 4 STG.E
copy_mat4: 16 LDG.E 16 STG.E'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
