#!/usr/bin/env bash
# Guess: load_matrix_sync() of CUDA's WMMA loads a tile of bfloat16 as one of half: LDSM from shared
# memory. From global memory it loads 16 bytes a lane with LDG, since tiles must be aligned to 32
# bytes.
# What happens: half has two LDSM for two tiles, but bfloat16 has eight generic loads (LD) of 4
# bytes a lane. nvcc finds out the memory space for half and int8. It does not for bfloat16, tf32
# and double. From global memory half, bfloat16 and tf32 load 4 bytes a lane, too. A load touches 8
# rows, in each 16 bytes: half of a sector.
# Version: nvcc, nvdisasm and the headers of CUDA 13.5.37, sm_80, sm_90 and sm_100.
# Why it matters: from half to bfloat16 the requests to shared memory become four times as many.
# Metrics of LDS, LDSM or LDG miss them. Global loads of half ask for each sector twice.
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
#include <mma.h>
using namespace nvcuda::wmma;

template <class Type, int SIZE, int DEPTH, class Element, class Sum>
__device__ void multiply(Sum *output, const Element *a, const Element *b, int stride) {
  fragment<matrix_a, SIZE, SIZE, DEPTH, Type, row_major> left;
  fragment<matrix_b, SIZE, SIZE, DEPTH, Type, col_major> right;
  fragment<accumulator, SIZE, SIZE, DEPTH, Sum> sum;
  load_matrix_sync(left, a, stride);
  load_matrix_sync(right, b, stride);
  fill_fragment(sum, Sum(0));
  mma_sync(sum, left, right, sum);
  store_matrix_sync(output, sum, SIZE, mem_row_major);
}

#define KERNELS(NAME, ELEMENT, TYPE, SUM, SIZE, DEPTH)                                                       \
  extern "C" __global__ void global_##NAME(SUM *output, const ELEMENT *a, const ELEMENT *b) {                \
    multiply<TYPE, SIZE, DEPTH>(output, a, b, 1024);                                                         \
  }                                                                                                          \
  extern "C" __global__ void shared_##NAME(SUM *output, const ELEMENT *a, const ELEMENT *b) {                \
    __shared__ __align__(32) ELEMENT tiles[2][SIZE * DEPTH];                                                 \
    asm volatile("" : : "l"(tiles) : "memory"); /* stands for the code that fills both tiles */              \
    multiply<TYPE, SIZE, DEPTH>(output, tiles[0], tiles[1], DEPTH);                                          \
  }
KERNELS(half, half, half, float, 16, 16)
KERNELS(int8, signed char, signed char, int, 16, 16)
KERNELS(bfloat16, __nv_bfloat16, __nv_bfloat16, float, 16, 16)
KERNELS(tf32, float, precision::tf32, float, 16, 8)
KERNELS(double, double, double, double, 8, 4)
CUDA

for arch in sm_80 sm_90 sm_100; do
  nvcc -cubin -arch=$arch "$work/kernels.cu" -o "$work/kernels.cubin"
  for kernel in {shared,global}_{half,int8,bfloat16,tf32,double}; do
    nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/EXIT/p" |
      grep -oE '\<(LD|LDG|LDSM|LDS|ST|STG)\>[.A-Z0-9]*' | sort | uniq -c |
      awk -v name="$arch $kernel:" '{ name = name " " $1 " " $2 } END { print name }'
  done
done | tee "$work/seen"

expected=$(for arch in sm_80 sm_90 sm_100; do
  echo "$arch shared_half: 2 LDSM.16.M88.4 4 STG.E.64
$arch shared_int8: 2 LDSM.16.M88.2 4 STG.E.64
$arch shared_bfloat16: 8 LD.E 4 STG.E.64
$arch shared_tf32: 8 LD.E 4 ST.E.64
$arch shared_double: 2 LD.E.64 1 ST.E.128
$arch global_half: 8 LDG.E 4 STG.E.64
$arch global_int8: 4 LDG.E 4 STG.E.64
$arch global_bfloat16: 8 LD.E 4 STG.E.64
$arch global_tf32: 8 LD.E 4 ST.E.64
$arch global_double: 2 LD.E.64 1 ST.E.128"
done)
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
