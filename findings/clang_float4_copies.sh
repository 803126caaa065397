#!/usr/bin/env bash
# Guess: clang copies a float4 of CUDA's headers with one access of 16 bytes, as nvcc does. It is
# aligned to 16. A change of one component on the way changes no access.
# What happens: a plain copy is two loads and two stores of 8 bytes. With one component changed it
# is four of 4 bytes. Only with all four changed it is one of 16. nvcc makes one of 16 of each.
# Version: the clang 22.1.8 of ziglang 0.17.1; nvcc, ptxas, nvdisasm and headers of CUDA 13.5.37;
# sm_90.
# Why it matters: a copy of float4 is the usual benchmark of bandwidth. Lanes are 16 bytes apart in
# each access. Built by clang, a warp asks for 32 or 64 sectors where 16 would do.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" ziglang==0.17.1 \
  nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 nvidia-cuda-crt==13.5.37 \
  nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37
cuda="$work/packages/nvidia/cu13"
PATH="$cuda/bin:$work/packages/ziglang:$PATH"
zig clang --version | head -n 1
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <vector_types.h>

#ifdef __clang__
#define LANE __nvvm_read_ptx_sreg_tid_x()
#else
#define LANE threadIdx.x
#endif
#define KERNEL(NAME, CHANGE) extern "C" __global__ void NAME(float4 *output, const float4 *source) \
  { float4 value = source[LANE]; CHANGE; output[LANE] = value; }
KERNEL(change_none, )
KERNEL(change_one, value.x += 1)
KERNEL(change_two, (value.x += 1, value.y += 1))
KERNEL(change_four, (value.x += 1, value.y += 1, value.z += 1, value.w += 1))
CUDA

nvcc -ptx -arch=sm_90 "$work/kernels.cu" -o "$work/nvcc.ptx"
zig clang -x cuda -O3 -S --cuda-device-only --cuda-gpu-arch=sm_90 -nocudainc -nocudalib \
  -D__CUDACC__ -w -I "$cuda/include" "$work/kernels.cu" -o "$work/clang.ptx"
for compiler in nvcc clang; do
  ptxas -arch=sm_90 "$work/$compiler.ptx" -o "$work/kernels.cubin"
  for kernel in change_none change_one change_two change_four; do
    nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/EXIT/p" |
      grep -oE '(LDG|STG)[.A-Z0-9]*' | sort | uniq -c |
      awk -v name="$compiler $kernel:" '{ name = name " " $1 " " $2 } END { print name }'
  done
done | tee "$work/seen"

expected='nvcc change_none: 1 LDG.E.128 1 STG.E.128
nvcc change_one: 1 LDG.E.128 1 STG.E.128
nvcc change_two: 1 LDG.E.128 1 STG.E.128
nvcc change_four: 1 LDG.E.128 1 STG.E.128
clang change_none: 2 LDG.E.64 2 STG.E.64
clang change_one: 4 LDG.E 4 STG.E
clang change_two: 2 LDG.E.64 2 STG.E.64
clang change_four: 1 LDG.E.128 1 STG.E.128'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
