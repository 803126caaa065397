#!/usr/bin/env bash
# Guess: a local copy of a generator's state, as in cuRAND's examples, costs no more global accesses
# than curand(&states[i]). Each reads the words that the generator needs, and writes the words that
# it changes.
# What happens: a copy reads and writes whole states. With it, a number of Sobol32 takes 35 loads
# and 35 stores of the state. Without it there are 3 loads and 2 stores. 32 words are direction
# vectors, written back unchanged. XORWOW has 6 and 6 instead of 3 and 3; Philox has fewer with a
# copy. In a loop Sobol32's copy is in local memory, too: 144 bytes a thread.
# Version: cuRAND 10.4.5.25, nvcc and nvdisasm 13.5.37, sm_90.
# Why it matters: states lie 140 bytes apart, so each access touches a sector for each lane. With
# the copy there are 14 times the requests.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 \
  nvidia-curand==10.4.5.25
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <curand_kernel.h>

// The numbers go to shared memory, so that all global accesses are the state's.
__shared__ unsigned numbers[256];

#define KERNELS(NAME, STATE)                                     \
  extern "C" __global__ void NAME##_in_place(STATE *states) {    \
    numbers[threadIdx.x] = curand(states + threadIdx.x);         \
    asm volatile("" : : "l"(numbers) : "memory");                \
  }                                                              \
  extern "C" __global__ void NAME##_copied(STATE *states) {      \
    STATE state = states[threadIdx.x];                           \
    numbers[threadIdx.x] = curand(&state);                       \
    asm volatile("" : : "l"(numbers) : "memory");                \
    states[threadIdx.x] = state;                                 \
  }                                                              \
  extern "C" __global__ void NAME##_loop(STATE *states, int n) { \
    STATE state = states[threadIdx.x];                           \
    for (int i = 0; i < n; i++) {                                \
      numbers[threadIdx.x] = curand(&state);                     \
      asm volatile("" : : "l"(numbers) : "memory");              \
    }                                                            \
    states[threadIdx.x] = state;                                 \
  }
KERNELS(xorwow, curandStateXORWOW_t)
KERNELS(philox, curandStatePhilox4_32_10_t)
KERNELS(sobol32, curandStateSobol32_t)
KERNELS(sobol64, curandStateSobol64_t)
CUDA

nvcc -cubin -arch=sm_90 -Xptxas -v -I "$work/packages/nvidia/cu13/include/cccl" "$work/kernels.cu" -o "$work/kernels.cubin" 2>"$work/log"
for kernel in {xorwow,philox,sobol32,sobol64}_{in_place,copied,loop}; do
  nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\//p" >"$work/listing"
  echo "$kernel: $(grep -c '\<LDG' "$work/listing") loads, $(grep -c '\<STG' "$work/listing") stores," \
    "$(grep -A1 "properties for $kernel" "$work/log" | grep -o '[0-9]* bytes stack frame')"
done | tee "$work/seen"

expected='xorwow_in_place: 3 loads, 3 stores, 0 bytes stack frame
xorwow_copied: 6 loads, 6 stores, 0 bytes stack frame
xorwow_loop: 6 loads, 6 stores, 0 bytes stack frame
philox_in_place: 8 loads, 7 stores, 0 bytes stack frame
philox_copied: 5 loads, 5 stores, 0 bytes stack frame
philox_loop: 5 loads, 5 stores, 0 bytes stack frame
sobol32_in_place: 3 loads, 2 stores, 0 bytes stack frame
sobol32_copied: 35 loads, 35 stores, 0 bytes stack frame
sobol32_loop: 35 loads, 35 stores, 144 bytes stack frame
sobol64_in_place: 3 loads, 2 stores, 0 bytes stack frame
sobol64_copied: 68 loads, 67 stores, 536 bytes stack frame
sobol64_loop: 67 loads, 67 stores, 536 bytes stack frame'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
