#!/usr/bin/env bash
# Guess: a relaxed store by cuda::atomic_ref<bool> or <uint8_t> is one store of a byte, as those of 16, 32 and 64 bits
# are one store. PTX has st.relaxed of 8 bits.
# What happens: it loads the word of 4 bytes around the byte and swaps it in a loop of compare-and-swap. A volatile store
# and one's own st.relaxed.gpu.b8 are one store each. A load of a byte reads 2 bytes.
# Version: libcu++ of nvidia-cuda-cccl 13.3.5.0.6, nvcc and nvdisasm 13.5.37, sm_90 and sm_100.
# Why it matters: lanes that set neighbouring flags write 4 flags of a word, so their swaps fail each other: up to 4 turns,
# each with an atomic that returns the old value. A plain store writes 32 flags of a warp in one request. Flags of an int
# are stored at once.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cuda/atomic>
#include <cstdint>
#define KERNEL(NAME, TYPE, ...) extern "C" __global__ void NAME(TYPE *flags, TYPE value) { flags += threadIdx.x; __VA_ARGS__; }
#define REFERENCE(TYPE) cuda::atomic_ref<TYPE, cuda::thread_scope_device>(*flags)
KERNEL(store_bool, bool, REFERENCE(bool).store(value, cuda::memory_order_relaxed))
KERNEL(store_uint8, uint8_t, REFERENCE(uint8_t).store(value, cuda::memory_order_relaxed))
KERNEL(store_int16, int16_t, REFERENCE(int16_t).store(value, cuda::memory_order_relaxed))
KERNEL(store_int32, int32_t, REFERENCE(int32_t).store(value, cuda::memory_order_relaxed))
KERNEL(store_int64, int64_t, REFERENCE(int64_t).store(value, cuda::memory_order_relaxed))
KERNEL(volatile_uint8, uint8_t, *(volatile uint8_t *)flags = value)
KERNEL(assembly_uint8, uint8_t, asm volatile("st.relaxed.gpu.b8 [%0], %1;" : : "l"(flags), "h"((short)value) : "memory"))
KERNEL(load_uint8, uint8_t, flags[99] = REFERENCE(uint8_t).load(cuda::memory_order_relaxed))
CUDA
for architecture in sm_90 sm_100; do
  nvcc -cubin "-arch=$architecture" -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" \
    "$work/kernels.cu" -o "$work/kernels.cubin"
  for kernel in store_{bool,uint8,int16,int32,int64} volatile_uint8 assembly_uint8 load_uint8; do
    nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
      grep -oE '\b(ATOM[GS]?|LDG?|STG?)\b(\.[A-Za-z0-9]+)*' |
      awk -v line="$architecture $kernel:" '{ line = line " " $1 } END { print line }'
  done
done | tee "$work/seen"

expected='sm_90 store_bool: LD.E.STRONG.GPU ATOM.E.CAS.STRONG.GPU
sm_90 store_uint8: LD.E.STRONG.GPU ATOM.E.CAS.STRONG.GPU
sm_90 store_int16: ST.E.U16.STRONG.GPU
sm_90 store_int32: ST.E.STRONG.GPU
sm_90 store_int64: ST.E.64.STRONG.GPU
sm_90 volatile_uint8: STG.E.U8.STRONG.SYS
sm_90 assembly_uint8: ST.E.U8.STRONG.GPU
sm_90 load_uint8: LD.E.U16.STRONG.GPU STG.E.U8
sm_100 store_bool: LD.E.STRONG.GPU ATOM.E.CAS.STRONG.GPU
sm_100 store_uint8: LD.E.STRONG.GPU ATOM.E.CAS.STRONG.GPU
sm_100 store_int16: ST.E.U16.STRONG.GPU
sm_100 store_int32: ST.E.STRONG.GPU
sm_100 store_int64: ST.E.64.STRONG.GPU
sm_100 volatile_uint8: STG.E.U8.STRONG.SYS
sm_100 assembly_uint8: ST.E.U8.STRONG.GPU
sm_100 load_uint8: LD.E.U16.STRONG.GPU STG.E.U8'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
