#!/usr/bin/env bash
# Guess: Thrust's reductions of an array of floats read it alike, 16 bytes a thread: reduce(), transform_reduce(),
# count_if(), max_element() and inner_product(). A transform_iterator changes no access.
# What happens: reduce() and transform_reduce() read 16 bytes, and any_of() has loads of both widths. The others read 4
# bytes, as does reduce() of a transform_iterator. inner_product() of an array with itself reads it twice.
# Version: Thrust of nvidia-cuda-cccl 13.3.5.0.6, nvcc and nvdisasm 13.5.37, sm_90. Seen on 30 November 2026.
# Why it matters: count_if() makes four times the requests of a transform_reduce() that counts the same. Sectors do not
# show it, since each request uses its 4 sectors.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/reduce.cu" <<'CUDA'
#include <cuda/std/functional>
#include <thrust/count.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/logical.h>
#include <thrust/reduce.h>
#include <thrust/transform_reduce.h>

struct is_positive {
  __device__ int operator()(float number) const { return number > 0; }
};

auto compute(const float *first, const float *last) {
  using namespace thrust;
  return REDUCTION;
}
CUDA

# list_loads REDUCTION: kinds of global loads of the kernel for many blocks. Single elements stand beside vectors, for arrays
# that are not aligned and for the last tile.
list_loads() {
  echo "#define REDUCTION $1" >"$work/reduction.h"
  nvcc -cubin -arch=sm_90 -std=c++17 -w -I "$work/packages/nvidia/cu13/include/cccl" -include "$work/reduction.h" "$work/reduce.cu" \
    -o "$work/reduce.cubin"
  nvdisasm -c "$work/reduce.cubin" | awk '/^\.text\./ { main = !/SingleTile/ } main' >"$work/kernels"
  echo "$1:" "$(grep -oE '\<LDG\.[.A-Z0-9]*' "$work/kernels" | sort -u | xargs)"
}

{
  list_loads 'reduce(device, first, last)'
  list_loads 'transform_reduce(device, first, last, is_positive(), 0, ::cuda::std::plus<int>())'
  list_loads 'reduce(device, make_transform_iterator(first, is_positive()), make_transform_iterator(last, is_positive()))'
  list_loads 'count_if(device, first, last, is_positive())'
  list_loads 'max_element(device, first, last)'
  list_loads 'inner_product(device, first, last, first, 0.0f)'
  list_loads 'any_of(device, first, last, is_positive())'
} | tee "$work/seen"

expected='reduce(device, first, last): LDG.E.128.CONSTANT LDG.E.CONSTANT
transform_reduce(device, first, last, is_positive(), 0, ::cuda::std::plus<int>()): LDG.E.128.CONSTANT LDG.E.CONSTANT
reduce(device, make_transform_iterator(first, is_positive()), make_transform_iterator(last, is_positive())): LDG.E
count_if(device, first, last, is_positive()): LDG.E
max_element(device, first, last): LDG.E
inner_product(device, first, last, first, 0.0f): LDG.E
any_of(device, first, last, is_positive()): LDG.E LDG.E.128.CONSTANT'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
