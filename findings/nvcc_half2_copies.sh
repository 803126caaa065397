#!/usr/bin/env bash
# Guess: a struct of 16 bytes, aligned to 16, that holds halves is copied with one access: as four __half2, as eight
# __half, and as four floats.
# What happens: of four __half2 or __nv_bfloat162, members or an array, with four accesses of 4 bytes, 16 bytes apart. Of
# __half, __nv_bfloat16 and the 8-bit types with one of 16. A local copy and __restrict__ change nothing. CUDA's headers
# give __half2 a copy constructor of its own, so that a struct is copied member by member. From and to shared memory one
# access is made all the same.
# Version: nvcc, nvdisasm and the headers of CUDA 13.5.37, sm_90 and sm_100. Seen on 30 November 2026.
# Why it matters: __half2 is there to move and compute more at once. Such a vector makes four times the requests, and
# each of them touches all of its 16 sectors. A copy as uint4 is one access.
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
#include <cuda_fp8.h>
#include <type_traits>

static_assert(std::is_trivially_copyable_v<__half> && std::is_trivially_copyable_v<__nv_fp8x4_e4m3>);
static_assert(!std::is_trivially_copyable_v<__half2> && !std::is_trivially_copyable_v<__nv_bfloat162>);

template <class Element> struct alignas(16) array_of { Element elements[16 / sizeof(Element)]; };
struct alignas(16) half2_members { __half2 a, b, c, d; };

#define KERNEL(NAME, TYPE, ...) extern "C" __global__ void NAME(TYPE *__restrict__ output, const TYPE *__restrict__ source) \
  { output += threadIdx.x; source += threadIdx.x; __VA_ARGS__; }
KERNEL(float_array, array_of<float>, *output = *source)
KERNEL(half_array, array_of<__half>, *output = *source)
KERNEL(bfloat16_array, array_of<__nv_bfloat16>, *output = *source)
KERNEL(fp8x4_array, array_of<__nv_fp8x4_e4m3>, *output = *source)
KERNEL(half2_array, array_of<__half2>, *output = *source)
KERNEL(bfloat162_array, array_of<__nv_bfloat162>, *output = *source)
KERNEL(half2_struct, half2_members, *output = *source)
KERNEL(half2_local, half2_members, half2_members value = *source; *output = value)
KERNEL(half2_as_uint4, half2_members, *reinterpret_cast<uint4 *>(output) = *reinterpret_cast<const uint4 *>(source))
KERNEL(half2_shared, half2_members, __shared__ half2_members kept[32]; kept[threadIdx.x] = *source; __syncthreads();
       *output = kept[31 - threadIdx.x])
CUDA

kernels=$(sed -n 's/^KERNEL(\(\w*\),.*/\1/p' "$work/kernels.cu")
for architecture in sm_90 sm_100; do
  nvcc -cubin "-arch=$architecture" -std=c++17 -w -I "$work/packages/nvidia/cu13/include/cccl" "$work/kernels.cu" \
    -o "$work/kernels.cubin"
  nvdisasm -c "$work/kernels.cubin" >"$work/listing"
  for kernel in $kernels; do
    sed -n "/^\.text\.$kernel:/,/EXIT/p" "$work/listing" | grep -oE '(LDG|STG|LDS|STS)[.A-Z0-9]*' | sort | uniq -c |
      awk -v name="$architecture $kernel:" '{ name = name " " $1 " " $2 } END { print name }'
  done
done | tee "$work/seen"

expected=$(for architecture in sm_90 sm_100; do
  for kernel in $kernels; do
    case $kernel in
      half2_array | bfloat162_array | half2_struct | half2_local) accesses='4 LDG.E.CONSTANT 4 STG.E' ;;
      half2_shared) accesses='4 LDG.E.CONSTANT 1 LDS.128 4 STG.E 1 STS.128' ;;
      *) accesses='1 LDG.E.128.CONSTANT 1 STG.E.128' ;;
    esac
    echo "$architecture $kernel: $accesses"
  done
done)
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
