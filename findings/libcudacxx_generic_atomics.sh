#!/usr/bin/env bash
# Guess: cuda::atomic_ref makes the accesses of CUDA's atomic functions. In global memory an addition whose result is
# unused is RED, and one in shared memory is ATOMS. A relaxed load of shared memory is LDS.
# What happens: the addresses are generic. An addition is ATOM, in either memory, even if its result is unused. A load is
# LD. An addition of floats has code for each memory: for shared memory a loop, and for local memory LD and ST.
# Version: libcu++ of nvidia-cuda-cccl 13.3.5.0.6, nvcc and nvdisasm 13.5.37, sm_90 and sm_100.
# Why it matters: who searches machine code for ATOMS or RED misses these. The kernel's text does not tell global memory
# from shared memory. And a histogram in shared memory loses ATOMS.POPC.INC, which CUDA's function becomes.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cuda/atomic>

constexpr auto relaxed = cuda::memory_order_relaxed;
template <class Number> using ref = cuda::atomic_ref<Number, cuda::thread_scope_device>;

// The addition of an array in global memory, and the histogram of a block in shared memory
#define KERNELS(NAME, NUMBER, ADD) \
  extern "C" __global__ void global_##NAME(NUMBER *array) { NUMBER &value = array[threadIdx.x]; ADD; } \
  extern "C" __global__ void shared_##NAME(NUMBER *array, const int *index) { \
    __shared__ NUMBER counts[64]; \
    counts[threadIdx.x] = 0; \
    __syncthreads(); \
    NUMBER &value = counts[index[threadIdx.x]]; \
    ADD; \
    __syncthreads(); \
    array[threadIdx.x] = counts[threadIdx.x]; \
  }
KERNELS(int_function, int, atomicAdd(&value, 1))
KERNELS(int_ref, int, ref<int>(value).fetch_add(1, relaxed))
KERNELS(float_function, float, atomicAdd(&value, 1))
KERNELS(float_ref, float, ref<float>(value).fetch_add(1, relaxed))

extern "C" __global__ void shared_load(int *array) {
  __shared__ int copies[64];
  copies[threadIdx.x] = array[threadIdx.x];
  __syncthreads();
  array[threadIdx.x] = ref<int>(copies[63 - threadIdx.x]).load(relaxed);
}
CUDA

for arch in sm_90 sm_100; do
  nvcc -cubin -arch=$arch -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$work/kernels.cu" -o "$work/kernels.cubin"
  for kernel in {global,shared}_{int,float}_{function,ref} shared_load; do
    # Loads and stores of a known memory are left out: LDG, STG, LDS and STS
    nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
      grep -oE '\<(ATOM[SG]?|REDG?|LD|ST)\.[.A-Z0-9]*' | sort | uniq -c |
      awk -v name="$arch $kernel:" '{ name = name " " $1 " " $2 } END { print name }'
  done
done | tee "$work/seen"

expected=$(for arch in sm_90 sm_100; do
  echo "$arch global_int_function: 1 REDG.E.ADD.STRONG.GPU
$arch global_int_ref: 1 ATOM.E.ADD.S32.STRONG.GPU
$arch global_float_function: 1 REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
$arch global_float_ref: 1 ATOM.E.ADD.F32.FTZ.RN.STRONG.GPU 1 ATOM.E.CAST.SPIN.STRONG.SM 1 ATOMS.CAST.SPIN 2 LD.E 1 ST.E
$arch shared_int_function: 1 ATOMS.POPC.INC.32
$arch shared_int_ref: 1 ATOM.E.ADD.S32.STRONG.GPU
$arch shared_float_function: 1 ATOMS.CAST.SPIN
$arch shared_float_ref: 1 ATOM.E.ADD.F32.FTZ.RN.STRONG.GPU 1 ATOM.E.CAST.SPIN.STRONG.SM 1 ATOMS.CAST.SPIN 2 LD.E 1 ST.E
$arch shared_load: 1 LD.E.STRONG.GPU"
done)
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
