#!/usr/bin/env bash
# Guess: cuda::restrict_mdspan acts as a `__restrict__` pointer: a value read before and after a store is loaded once, and
# a constant source is read with ld.global.nc. The reference shows such an example of repeated reads.
# What happens: nothing changes: each read is an ld.global of its own, as with a plain mdspan or a plain pointer. So it is
# for a `__restrict__` pointer in a struct that a kernel takes by value. nvcc honours the word on parameters of functions.
# Version: nvcc 13.5.37, libcu++ of nvidia-cuda-cccl 13.3.5.0.6, sm_90 and sm_100.
# Why it matters: such a kernel makes the loads of one without any promise, and none through the path of constant data.
# Handing data_handle() to a function with `__restrict__` parameters saves the second load, but makes no ld.global.nc.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 \
  nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cuda/mdspan>

using restricted_output = cuda::restrict_mdspan<float, cuda::std::dims<1>>;
using restricted_source = cuda::restrict_mdspan<const float, cuda::std::dims<1>>;
using plain_output = cuda::std::mdspan<float, cuda::std::dims<1>>;
using plain_source = cuda::std::mdspan<const float, cuda::std::dims<1>>;

template <class Output, class Source>
__device__ void scale(Output output, Source source) {
  output[threadIdx.x] = 2 * source[0];
  output[threadIdx.x + 32] = 3 * source[0];
}

__device__ void scale_restricted(float *__restrict__ output, const float *__restrict__ source) { scale(output, source); }

struct restricted_pointers {
  float *__restrict__ output;
  const float *__restrict__ source;
};

#define KERNEL(NAME, ...) extern "C" __global__ void NAME(__VA_ARGS__)
KERNEL(plain_pointers, float *output, const float *source) { scale(output, source); }
KERNEL(restrict_pointers, float *__restrict__ output, const float *__restrict__ source) { scale(output, source); }
KERNEL(restrict_members, restricted_pointers both) { scale(both.output, both.source); }
KERNEL(plain_mdspans, plain_output output, plain_source source) { scale(output, source); }
KERNEL(restrict_mdspans, restricted_output output, restricted_source source) { scale(output, source); }
KERNEL(data_handles, restricted_output output, restricted_source source) {
  scale_restricted(output.data_handle(), source.data_handle());
}
CUDA

kernels=$(sed -n 's/^KERNEL(\(\w*\),.*/\1/p' "$work/kernels.cu")
for arch in sm_90 sm_100; do
  nvcc -ptx -arch=$arch -std=c++20 -I "$work/packages/nvidia/cu13/include/cccl" "$work/kernels.cu" -o "$work/kernels.ptx"
  for kernel in $kernels; do
    sed -n "/entry $kernel(/,/ret;/p" "$work/kernels.ptx" | grep -oE 'ld\.global(\.nc)?' | sort | uniq -c |
      awk -v name="$arch $kernel:" '{ name = name " " $1 " " $2 } END { print name }'
  done
done | tee "$work/seen"

expected=$(for arch in sm_90 sm_100; do
  echo "$arch plain_pointers: 2 ld.global
$arch restrict_pointers: 1 ld.global.nc
$arch restrict_members: 2 ld.global
$arch plain_mdspans: 2 ld.global
$arch restrict_mdspans: 2 ld.global
$arch data_handles: 1 ld.global"
done)
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
