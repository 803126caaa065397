#!/usr/bin/env bash
# Guess: thrust::transform() of a contiguous array accesses 16 bytes a thread, or copies in bulk on sm_90. A struct of
# one's own that negates makes the same accesses as thrust::negate.
# What happens: only thrust::negate does: bulk copies (UBLKCP) on sm_90, and copies of 16 bytes a thread (LDGSTS.128) on
# sm_80. A struct or a placeholder prefetches, then loads and stores single elements: 4 bytes of floats, one of chars.
# Thrust cannot know whether they use an argument's address; cuda::proclaim_copyable_arguments() tells it.
# Version: Thrust of nvidia-cuda-cccl 13.3.5.0.6, nvcc and nvdisasm 13.5.37, sm_80 and sm_90.
# Why it matters: a benchmark with thrust::negate measures another kernel than one with a function of one's own. For
# chars the latter makes a request for each 32 bytes. Bulk copies are no loads: who counts LDG misses them.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/transform.cu" <<'CUDA'
#include <cuda/functional>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/transform.h>

template <class Number> struct own_negate {
  __device__ Number operator()(Number number) const { return -number; }
};

void transform(const NUMBER *source, NUMBER *output, int n) {
  using namespace thrust::placeholders;
  thrust::transform(thrust::device, source, source + n, output, FUNCTION);
}
CUDA

# count_accesses ARCH NUMBER FUNCTION: kinds of access to global memory. Those of single bytes stand beside cp.async
# and bulk copies, for the array's unaligned ends.
count_accesses() {
  nvcc -cubin -arch="$1" -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" -DNUMBER="$2" -DFUNCTION="$3" \
    "$work/transform.cu" -o "$work/transform.cubin"
  nvdisasm -c "$work/transform.cubin" | grep -oE '\<(CCTL|LDG|LDGSTS|STG|UBLKCP)\.[.A-Z0-9]*' | sort -u >"$work/kinds"
  echo "$1 $3:" "$(xargs <"$work/kinds")"
}

{
  count_accesses sm_80 float 'thrust::negate<float>()'
  count_accesses sm_80 float 'own_negate<float>()'
  count_accesses sm_90 float 'thrust::negate<float>()'
  count_accesses sm_90 float 'own_negate<float>()'
  count_accesses sm_90 float 'cuda::proclaim_copyable_arguments(own_negate<float>())'
  count_accesses sm_90 float '-_1'
  count_accesses sm_90 char 'thrust::negate<char>()'
  count_accesses sm_90 char 'own_negate<char>()'
} | tee "$work/seen"

expected='sm_80 thrust::negate<float>(): LDG.E.U8 LDGSTS.E.BYPASS.128 STG.E
sm_80 own_negate<float>(): CCTL.E.PF2 LDG.E STG.E
sm_90 thrust::negate<float>(): LDG.E.U8 STG.E STG.E.128 UBLKCP.S.G
sm_90 own_negate<float>(): CCTL.E.PF2 LDG.E STG.E
sm_90 cuda::proclaim_copyable_arguments(own_negate<float>()): LDG.E.U8 STG.E STG.E.128 UBLKCP.S.G
sm_90 -_1: CCTL.E.PF2 LDG.E STG.E
sm_90 thrust::negate<char>(): LDG.E.U8 STG.E.128 STG.E.U8 UBLKCP.S.G
sm_90 own_negate<char>(): CCTL.E.PF2 LDG.E.U8 STG.E.U8'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
