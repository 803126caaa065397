#!/usr/bin/env bash
# Guess: BLOCK_LOAD_VECTORIZE of CUB's BlockLoad loads 16 bytes of a thread with one access. Through an iterator
# CacheModifiedInputIterator<LOAD_CS> it keeps the hint, as each read of the iterator does.
# What happens: a test at run time chooses between a vector and single elements. With the iterator only the vector has
# the hint, in a generic load (LD) instead of a global one (LDG): at an address that 16 does not divide the hint is
# lost. A vector is four elements at most: 16 chars are four loads of 4 bytes, and 8 halves two of 8, 16 bytes apart.
# Version: CUB of nvidia-cuda-cccl 13.3.5.0.6, nvcc and nvdisasm 13.5.37, sm_90.
# Why it matters: vectorized loads of chars touch 4 times the sectors. Who searches the machine code for LDG does not
# find the modified loads. Who measures the hint at an offset measures loads without it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cub/block/block_load.cuh>
#include <cub/iterator/cache_modified_input_iterator.cuh>
#include <cuda_fp16.h>

template <cub::BlockLoadAlgorithm algorithm, int count, class Element, class Iterator>
__device__ void copy(Element *output, Iterator source) {
  using Load = cub::BlockLoad<Element, 128, count, algorithm>;
  __shared__ typename Load::TempStorage storage;
  Element items[count];
  Load(storage).Load(source + blockIdx.x * 128 * count, items);
  for (int i = 0; i < count; i++) output[(blockIdx.x * count + i) * 128 + threadIdx.x] = items[i];
}

#define KERNEL(NAME, ELEMENT, COUNT, ALGORITHM, ITERATOR) extern "C" __global__ void NAME(ELEMENT *output, ELEMENT *source) \
  { copy<cub::BLOCK_LOAD_##ALGORITHM, COUNT>(output, ITERATOR(source)); }
using streaming_floats = cub::CacheModifiedInputIterator<cub::LOAD_CS, float>;
KERNEL(floats_4, float, 4, VECTORIZE, )
KERNEL(floats_4_streaming, float, 4, VECTORIZE, streaming_floats)
KERNEL(floats_4_streaming_direct, float, 4, DIRECT, streaming_floats)
KERNEL(halves_8, __half, 8, VECTORIZE, )
KERNEL(chars_16, char, 16, VECTORIZE, )
CUDA

nvcc -cubin -arch=sm_90 -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$work/kernels.cu" -o "$work/kernels.cubin"
echo 'loads of both paths:' | tee "$work/seen"
for kernel in floats_4 floats_4_streaming floats_4_streaming_direct halves_8 chars_16; do
  nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/EXIT/p" |
    grep -oE '\<LDG?\.[.A-Z0-9]*' | sort | uniq -c |
    awk -v name="$kernel:" '{ name = name " " $1 " " $2 } END { print name }'
done | tee -a "$work/seen"

expected='loads of both paths:
floats_4: 4 LDG.E 1 LDG.E.128
floats_4_streaming: 1 LD.E.EF.128 4 LDG.E
floats_4_streaming_direct: 4 LD.E.EF
halves_8: 2 LDG.E.64 8 LDG.E.U16
chars_16: 4 LDG.E 16 LDG.E.U8'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
