#!/usr/bin/env bash
# Guess: cuda::memcpy_async() of a float4 a thread, with a cuda::barrier, is one LDGSTS of 16 bytes a warp, as it is with
# a cuda::pipeline. Bulk copies are for a group that copies a tile.
# What happens: so it is on sm_80. From sm_90 on each lane makes a bulk copy of its 16 bytes, one after the other: a loop
# around UBLKCP, which elects a lane each turn, and an arrival of 16 bytes a lane. sizeof(float4) does the same as
# cuda::aligned_size_t<16>(16). A group's copy is one UBLKCP.
# Version: libcu++ of nvidia-cuda-cccl 13.3.5.0.6 (CCCL 3.5), nvcc and nvdisasm 13.5.37. Seen on 1 December 2026.
# Why it matters: a warp asks 32 times for 16 bytes where it asked once for 512. Code written for Ampere does this when
# it is compiled for Hopper or Blackwell, and metrics of LDGSTS are 0.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/copies.cu" <<'CUDA'
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
using Barrier = cuda::barrier<cuda::thread_scope_block>;
#define COPY_BY_BARRIER(NAME, COPY)                                                      \
  extern "C" __global__ void NAME(float4 *output, const float4 *source) {                \
    __shared__ float4 tile[256];                                                         \
    __shared__ Barrier barrier;                                                          \
    if (threadIdx.x == 0) init(&barrier, 256);                                           \
    __syncthreads();                                                                     \
    COPY;                                                                                \
    barrier.arrive_and_wait();                                                           \
    output[threadIdx.x] = tile[255 - threadIdx.x];                                       \
  }
COPY_BY_BARRIER(thread_aligned,
  cuda::memcpy_async(tile + threadIdx.x, source + threadIdx.x, cuda::aligned_size_t<16>(16), barrier))
COPY_BY_BARRIER(thread_sizeof, cuda::memcpy_async(tile + threadIdx.x, source + threadIdx.x, sizeof(float4), barrier))
COPY_BY_BARRIER(group, cuda::memcpy_async(cooperative_groups::this_thread_block(), tile, source,
                                          cuda::aligned_size_t<16>(sizeof tile), barrier))
extern "C" __global__ void thread_pipeline(float4 *output, const float4 *source) {
  __shared__ float4 tile[256];
  auto pipeline = cuda::make_pipeline();
  pipeline.producer_acquire();
  cuda::memcpy_async(tile + threadIdx.x, source + threadIdx.x, sizeof(float4), pipeline);
  pipeline.producer_commit();
  pipeline.consumer_wait();
  pipeline.consumer_release();
  __syncthreads();
  output[threadIdx.x] = tile[255 - threadIdx.x];
}
CUDA
# BRA.U.ANY goes back to the loop's begin while any lane has not been elected.
for architecture in sm_80 sm_90 sm_100; do
  nvcc -cubin "-arch=$architecture" -std=c++17 -w -I "$work/packages/nvidia/cu13/include/cccl" "$work/copies.cu" -o "$work/copies.cubin"
  for kernel in thread_aligned thread_sizeof group thread_pipeline; do
    echo "$architecture $kernel: $(nvdisasm -c "$work/copies.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
      grep -oE '\b(ELECT|LDGSTS|UBLKCP|BRA\.U\.ANY)(\.[A-Z0-9]+)*' | xargs)"
  done
done | tee "$work/seen"

expected='sm_80 thread_aligned: LDGSTS.E.BYPASS.128 LDGSTS
sm_80 thread_sizeof: LDGSTS.E.BYPASS.128 LDGSTS
sm_80 group: LDGSTS.E.BYPASS.128 LDGSTS
sm_80 thread_pipeline: LDGSTS.E.BYPASS.128
sm_90 thread_aligned: ELECT UBLKCP.S.G BRA.U.ANY
sm_90 thread_sizeof: ELECT UBLKCP.S.G BRA.U.ANY
sm_90 group: ELECT UBLKCP.S.G
sm_90 thread_pipeline: LDGSTS.E.BYPASS.128
sm_100 thread_aligned: ELECT UBLKCP.S.G BRA.U.ANY
sm_100 thread_sizeof: ELECT UBLKCP.S.G BRA.U.ANY
sm_100 group: ELECT UBLKCP.S.G
sm_100 thread_pipeline: LDGSTS.E.BYPASS.128'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
