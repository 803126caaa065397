#!/usr/bin/env bash
# Guess, written after the first sign: an atomicAdd() of a __half2 in global memory, whose result is
# unused, is one REDG, as of a float2: ptxas has that reduction.
# What happens: CUDA's header writes it as an atomic in any memory. So it is a generic ATOM, whose
# answer says whether it worked, and after that code for shared and for local memory: a loop of
# compare-and-swap, and a load and a store. __nv_bfloat162 is alike. One's own assembly of
# red.global is one REDG.
# Version: nvcc, nvdisasm and the headers of CUDA 13.5.37, sm_90 and sm_100.
# Why it matters: each thread waits for an answer, and counters of reductions, or of accesses of
# global memory alone, miss these. The kernel's code counts accesses of shared memory that never
# run.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define KERNEL(NAME, TYPE) \
  extern "C" __global__ void NAME(TYPE *output, TYPE value) { \
    atomicAdd(output + threadIdx.x, value); \
  }
KERNEL(kernel_float, float)
KERNEL(kernel_float2, float2)
KERNEL(kernel_half2, __half2)
KERNEL(kernel_bfloat162, __nv_bfloat162)
extern "C" __global__ void kernel_assembly(__half2 *output, unsigned value) {
  const size_t address = __cvta_generic_to_global(output + threadIdx.x);
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" : : "l"(address), "r"(value));
}
CUDA
for architecture in sm_90 sm_100; do
  nvcc -cubin "-arch=$architecture" -I "$work/packages/nvidia/cu13/include/cccl" \
    "$work/kernels.cu" -o "$work/kernels.cubin"
  for kernel in float float2 half2 bfloat162 assembly; do
    nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.kernel_$kernel:/,/^\/\/---/p" |
      grep -oE '\b(REDG?|ATOM[GS]?|LD[GS]?|ST[GS]?)\b(\.[A-Za-z0-9]+)*' |
      awk -v line="$architecture $kernel:" '{ line = line " " $1 } END { print line }'
  done
done | tee "$work/seen"

expected='sm_90 float: REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
sm_90 float2: REDG.E.ADD.F32x2.FTZ.RN.STRONG.GPU
sm_90 half2: ATOM.E.ADD.F16x2.RN.STRONG.GPU LDS ATOMS.CAST.SPIN LD.E ST.E
sm_90 bfloat162: ATOM.E.ADD.BF16x2.RN.STRONG.GPU LDS ATOMS.CAST.SPIN LD.E ST.E
sm_90 assembly: REDG.E.ADD.F16x2.RN.STRONG.GPU
sm_100 float: REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
sm_100 float2: REDG.E.ADD.F32x2.FTZ.RN.STRONG.GPU
sm_100 half2: ATOM.E.ADD.F16x2.RN.STRONG.GPU LDS ATOMS.CAST.SPIN LD.E ST.E
sm_100 bfloat162: ATOM.E.ADD.BF16x2.RN.STRONG.GPU LDS ATOMS.CAST.SPIN LD.E ST.E
sm_100 assembly: REDG.E.ADD.F16x2.RN.STRONG.GPU'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
