#!/usr/bin/env bash
# Guess: cub::ThreadLoad<LOAD_VOLATILE>() of a float4 reads each of its bytes once, with 16 bytes an access, as LOAD_CS
# and LOAD_CG do.
# What happens: it loads 8 bytes three times: the first half twice. Of an int3 it loads 4 times 4 bytes, the first member
# twice, and of two doubles three times 8 bytes. What one word holds is read once. Its store is two of 8 bytes.
# Version: CUB of nvidia-cuda-cccl 13.3.5.0.6 (CCCL 3.5), nvcc and nvdisasm 13.5.37, sm_90 and sm_100. Seen on
# 1 December 2026.
# Why it matters: 3 requests where LOAD_CS has one, and half as many sectors again. Volatile loads read what others
# write meanwhile, so a compiler must not drop one.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/loads.cu" <<'CUDA'
#include <cub/thread/thread_load.cuh>
#include <cub/thread/thread_store.cuh>
#define COPY(TYPE)                                                                                                  \
  extern "C" __global__ void volatile_##TYPE(TYPE *output, TYPE *source) {                                          \
    cub::ThreadStore<cub::STORE_VOLATILE>(output + threadIdx.x, cub::ThreadLoad<cub::LOAD_VOLATILE>(source + threadIdx.x)); \
  }                                                                                                                 \
  extern "C" __global__ void streaming_##TYPE(TYPE *output, TYPE *source) {                                         \
    cub::ThreadStore<cub::STORE_CS>(output + threadIdx.x, cub::ThreadLoad<cub::LOAD_CS>(source + threadIdx.x));     \
  }
COPY(float) COPY(float2) COPY(float4) COPY(double2) COPY(int3) COPY(longlong4_16a)
CUDA
for architecture in sm_90 sm_100; do
  nvcc -cubin "-arch=$architecture" -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$work/loads.cu" -o "$work/loads.cubin"
  for kernel in {volatile,streaming}_{float,float2,float4,double2,int3,longlong4_16a}; do
    echo "$architecture $kernel: $(nvdisasm -c "$work/loads.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
      grep -oE '\b(LDG?|STG?)\.E[.A-Z0-9]*' | uniq -c | xargs)"
  done
done | tee "$work/seen"

expected='sm_90 volatile_float: 1 LDG.E.STRONG.SYS 1 STG.E.STRONG.SYS
sm_90 volatile_float2: 1 LDG.E.64.STRONG.SYS 1 STG.E.64.STRONG.SYS
sm_90 volatile_float4: 2 LDG.E.64.STRONG.SYS 2 STG.E.64.STRONG.SYS 1 LDG.E.64.STRONG.SYS
sm_90 volatile_double2: 2 LDG.E.64.STRONG.SYS 2 STG.E.64.STRONG.SYS 1 LDG.E.64.STRONG.SYS
sm_90 volatile_int3: 3 LDG.E.STRONG.SYS 3 STG.E.STRONG.SYS 1 LDG.E.STRONG.SYS
sm_90 volatile_longlong4_16a: 4 LDG.E.64.STRONG.SYS 4 STG.E.64.STRONG.SYS 1 LDG.E.64.STRONG.SYS
sm_90 streaming_float: 1 LD.E.EF 1 ST.E.EF
sm_90 streaming_float2: 1 LD.E.EF.64 1 ST.E.EF.64
sm_90 streaming_float4: 1 LD.E.EF.128 1 ST.E.EF.128
sm_90 streaming_double2: 1 LD.E.EF.128 1 ST.E.EF.128
sm_90 streaming_int3: 3 LD.E.EF 3 ST.E.EF
sm_90 streaming_longlong4_16a: 2 LD.E.EF.128 2 ST.E.EF.128
sm_100 volatile_float: 1 LDG.E.STRONG.SYS 1 STG.E.STRONG.SYS
sm_100 volatile_float2: 1 LDG.E.64.STRONG.SYS 1 STG.E.64.STRONG.SYS
sm_100 volatile_float4: 2 LDG.E.64.STRONG.SYS 2 STG.E.64.STRONG.SYS 1 LDG.E.64.STRONG.SYS
sm_100 volatile_double2: 2 LDG.E.64.STRONG.SYS 2 STG.E.64.STRONG.SYS 1 LDG.E.64.STRONG.SYS
sm_100 volatile_int3: 3 LDG.E.STRONG.SYS 3 STG.E.STRONG.SYS 1 LDG.E.STRONG.SYS
sm_100 volatile_longlong4_16a: 4 LDG.E.64.STRONG.SYS 4 STG.E.64.STRONG.SYS 1 LDG.E.64.STRONG.SYS
sm_100 streaming_float: 1 LD.E.EF 1 ST.E.EF
sm_100 streaming_float2: 1 LD.E.EF.64 1 ST.E.EF.64
sm_100 streaming_float4: 1 LD.E.EF.128 1 ST.E.EF.128
sm_100 streaming_double2: 1 LD.E.EF.128 1 ST.E.EF.128
sm_100 streaming_int3: 3 LD.E.EF 3 ST.E.EF
sm_100 streaming_longlong4_16a: 2 LD.E.EF.128 2 ST.E.EF.128'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
