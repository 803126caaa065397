#!/usr/bin/env bash
# Guess: BLOCK_STORE_VECTORIZE of CUB's BlockStore stores what BLOCK_LOAD_VECTORIZE loads with vectors. By the reference
# of both only an odd count of items, an unaligned address, and types other than primitive or CUDA's vectors prevent it.
# What happens: 2, 4, 8 or 12 floats a thread are stored with vectors. 6 and 10 floats, 6 doubles and two int2 are not,
# nor is any count of halves, while their loads have vectors. The test at run time is compiled all the same: both of its
# branches store single elements.
# Version: CUB of nvidia-cuda-cccl 13.3.5.0.6, nvcc and nvdisasm 13.5.37, sm_90. Seen on 30 November 2026.
# Why it matters: stores of 6 floats a thread are 6 requests, 24 bytes apart, where 3 of 8 bytes would do. Of 8 halves
# they are 8 requests instead of 2, and each touches all of the 16 sectors.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
#include <cuda_fp16.h>

// The other side of each copy is shared memory, so that all global accesses are CUB's.
template <int count, class Element> __device__ void load(const Element *source) {
  using Load = cub::BlockLoad<Element, 128, count, cub::BLOCK_LOAD_VECTORIZE>;
  __shared__ typename Load::TempStorage storage;
  __shared__ Element kept[count][128];
  Element items[count];
  Load(storage).Load(source, items);
  for (int i = 0; i < count; i++) kept[i][threadIdx.x] = items[i];
  asm volatile("" : : "l"(kept) : "memory");
}
template <int count, class Element> __device__ void store(Element *output) {
  using Store = cub::BlockStore<Element, 128, count, cub::BLOCK_STORE_VECTORIZE>;
  __shared__ typename Store::TempStorage storage;
  __shared__ Element kept[count][128];
  asm volatile("" : : "l"(kept) : "memory");
  Element items[count];
  for (int i = 0; i < count; i++) items[i] = kept[i][threadIdx.x];
  Store(storage).Store(output, items);
}

#define KERNELS(COUNT, ELEMENT) \
  extern "C" __global__ void load_##COUNT##_##ELEMENT(const ELEMENT *source) { load<COUNT>(source); } \
  extern "C" __global__ void store_##COUNT##_##ELEMENT(ELEMENT *output) { store<COUNT>(output); }
KERNELS(2, float)
KERNELS(4, float)
KERNELS(6, float)
KERNELS(10, float)
KERNELS(12, float)
KERNELS(2, double)
KERNELS(6, double)
KERNELS(2, int2)
KERNELS(8, short)
KERNELS(8, __half)
CUDA

nvcc -cubin -arch=sm_90 -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$work/kernels.cu" -o "$work/kernels.cubin"
nvdisasm -c "$work/kernels.cubin" >"$work/listing"
echo 'accesses of both branches:' | tee "$work/seen"
sed -n 's/^KERNELS(\(.*\), \(.*\))/\1_\2/p' "$work/kernels.cu" | while read -r kind; do
  for kernel in load_$kind store_$kind; do
    sed -n "/^\.text\.$kernel:/,/^\/\/---/p" "$work/listing" | grep -oE '(LDG|STG)[.A-Z0-9]*' | sort | uniq -c |
      awk -v name="$kernel:" '{ name = name " " $1 " " $2 } END { print name }'
  done
done | tee -a "$work/seen"

expected='accesses of both branches:
load_2_float: 2 LDG.E 1 LDG.E.64
store_2_float: 2 STG.E 1 STG.E.64
load_4_float: 4 LDG.E 1 LDG.E.128
store_4_float: 4 STG.E 1 STG.E.128
load_6_float: 6 LDG.E 3 LDG.E.64
store_6_float: 12 STG.E
load_10_float: 10 LDG.E 5 LDG.E.64
store_10_float: 20 STG.E
load_12_float: 12 LDG.E 3 LDG.E.128
store_12_float: 12 STG.E 3 STG.E.128
load_2_double: 1 LDG.E.128 2 LDG.E.64
store_2_double: 1 STG.E.128 2 STG.E.64
load_6_double: 3 LDG.E.128 6 LDG.E.64
store_6_double: 12 STG.E.64
load_2_int2: 1 LDG.E.128 2 LDG.E.64
store_2_int2: 4 STG.E.64
load_8_short: 2 LDG.E.64 8 LDG.E.U16
store_8_short: 2 STG.E.64 8 STG.E.U16
load_8___half: 2 LDG.E.64 8 LDG.E.U16
store_8___half: 16 STG.E.U16'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
