#!/usr/bin/env bash
# Guess: a + b of two glm::vec4 in a kernel is four additions. GLM marks its operators __host__ __device__, and nvcc
# refuses what a GPU cannot run.
# What happens: nvcc accepts it and adds nothing. GLM 1.0.2 adds by std::plus, a constexpr function of the host. nvcc
# warns (20013), exits with 0 and drops the operation: three of one operand's components are stored as they were loaded,
# and the fourth is not touched. Products and dot products are alike. --expt-relaxed-constexpr makes all right. GLM
# 0.9.9.8 needs no option, nor does a quaternion's sum.
# Version: GLM 1.0.2 as gsplat 1.5.3 brings it, GLM 0.9.9.8 of Debian 12, nvcc 13.5.37, sm_90. Seen on 30 November 2026.
# Why it matters: results are wrong. The kernel loads 3 floats a thread instead of 8, so its traffic is another kernel's.
# A build that hides a library's warnings hides this one.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 gsplat==1.5.3
PATH="$work/packages/nvidia/cu13/bin:$PATH"
apt-get -qq -o APT::Sandbox::User=root download libglm-dev=0.9.9.8+ds-6
dpkg -x libglm-dev*.deb .
nvcc --version | grep release

cat >kernels.cu <<'CUDA'
#include <cuda.h>
#include <glm/glm.hpp>
#include <glm/gtc/quaternion.hpp>

#define KERNEL(NAME, TYPE, RESULT) extern "C" __global__ void NAME(TYPE *output, const TYPE *left, const TYPE *right) { \
  const TYPE a = left[threadIdx.x], b = right[threadIdx.x]; output[threadIdx.x] = RESULT; }
KERNEL(sum, glm::vec4, a + b)
KERNEL(product, glm::vec4, a * b)
KERNEL(quaternion_sum, glm::quat, a + b)
KERNEL(dot, glm::vec4, glm::vec4(glm::dot(a, b)))
CUDA

# show_kernels VERSION HEADERS OPTION...: arithmetic and accesses of each kernel
show_kernels() {
  version=$1 headers=$2
  shift 2
  nvcc -cubin -arch=sm_90 -I packages/nvidia/cu13/include/cccl -I "$headers" "$@" kernels.cu -o kernels.cubin 2>log
  for kernel in sum product quaternion_sum dot; do
    nvdisasm -c kernels.cubin | sed -n "/^\.text\.$kernel:/,/EXIT/p" >kernel
    echo "$version $* $kernel: $(grep -cE '\<(FADD|FMUL|FFMA)' kernel) operations," \
      "$(grep -c LDG kernel) loads, $(grep -c STG kernel) stores"
  done
}

{
  show_kernels 1.0.2 packages/gsplat/cuda/csrc/third_party/glm
  grep -oE 'warning #20013-D: calling a constexpr __host__ function\("operator\(\)"\)' log | sort -u
  show_kernels 1.0.2 packages/gsplat/cuda/csrc/third_party/glm --expt-relaxed-constexpr
  show_kernels 0.9.9.8 usr/include
} | tee seen

expected='1.0.2  sum: 0 operations, 3 loads, 3 stores
1.0.2  product: 0 operations, 3 loads, 3 stores
1.0.2  quaternion_sum: 4 operations, 8 loads, 4 stores
1.0.2  dot: 2 operations, 2 loads, 4 stores
warning #20013-D: calling a constexpr __host__ function("operator()")
1.0.2 --expt-relaxed-constexpr sum: 4 operations, 8 loads, 4 stores
1.0.2 --expt-relaxed-constexpr product: 4 operations, 8 loads, 4 stores
1.0.2 --expt-relaxed-constexpr quaternion_sum: 4 operations, 8 loads, 4 stores
1.0.2 --expt-relaxed-constexpr dot: 5 operations, 8 loads, 4 stores
0.9.9.8  sum: 4 operations, 8 loads, 4 stores
0.9.9.8  product: 4 operations, 8 loads, 4 stores
0.9.9.8  quaternion_sum: 4 operations, 8 loads, 4 stores
0.9.9.8  dot: 5 operations, 8 loads, 4 stores'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
