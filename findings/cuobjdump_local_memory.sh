#!/usr/bin/env bash
# Guess: LOCAL of `cuobjdump -res-usage` is the bytes of local memory of a thread, as REG is its
# registers. The manual states its unit, bytes.
# What happens: LOCAL is 0, whether local memory holds an array, spilled registers or the arguments
# of printf(). They all are in STACK, as in the "stack frame" that ptxas prints, and in no other
# number.
# Version: cuobjdump, nvdisasm, nvcc and the headers of CUDA 13.5.37, sm_90.
# Why it matters: who takes LOCAL:0 for a proof misses the local loads and stores, which are traffic
# of L1, L2 and DRAM. STACK does not tell arrays, which may be needed, from spills, which are not.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 \
  nvidia-cuda-cuobjdump==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
cuobjdump --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cstdio>

extern "C" __global__ void array(float *data, int i) {
  float own[128];
  for (int k = 0; k < 128; k++) own[k] = data[k * k];
  for (int k = 0; k < 128; k++) own[k * i & 127] += own[k];
  data[threadIdx.x] = own[i];
}
extern "C" __global__ void __launch_bounds__(1024, 2) spills(volatile float *data) {
  float values[64];
#pragma unroll
  for (int k = 0; k < 64; k++) values[k] = data[k];
#pragma unroll
  for (int k = 0; k < 64; k++) data[k] = values[63 - k];
}
extern "C" __global__ void print(float *data) { printf("%f\n", data[threadIdx.x]); }
extern "C" __global__ void copy(float *data) { data[threadIdx.x] = data[threadIdx.x + 32]; }
CUDA

nvcc -cubin -arch=sm_90 "$work/kernels.cu" -o "$work/kernels.cubin"
cuobjdump -res-usage "$work/kernels.cubin" >"$work/usage"
for kernel in array spills print copy; do
  accesses=$(nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\//p" | grep -cE '\<(LDL|STL)' || true)
  echo "$kernel: $(grep -A1 "Function $kernel:" "$work/usage" | grep -oE '(STACK|LOCAL):[0-9]+' | paste -sd ' ')," \
    "$accesses instructions that access local memory"
done | tee "$work/seen"

expected='array: STACK:512 LOCAL:0, 352 instructions that access local memory
spills: STACK:168 LOCAL:0, 82 instructions that access local memory
print: STACK:8 LOCAL:0, 1 instructions that access local memory
copy: STACK:0 LOCAL:0, 0 instructions that access local memory'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
