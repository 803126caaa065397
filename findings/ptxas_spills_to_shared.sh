#!/usr/bin/env bash
# Guess: the line "bytes spill stores" of ptxas -v counts what a kernel spills, wherever it goes.
# What happens: with the pragma enable_smem_spilling it counts local memory alone. A kernel that spills 120 bytes a thread
# spills 0 by that line, while 38 stores of machine code spill. What tells of them is 18432 bytes of shared memory, which
# no line of the kernel declares.
# Version: nvcc, ptxas and nvdisasm 13.5.37, sm_90.
# Why it matters: a check that a kernel does not spill passes, while its shared memory grows. The spills are in each
# count of shared accesses, and no longer in those of local memory.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

cat >"$work/kernel.cu" <<'CUDA'
constexpr int count = 35;

extern "C" __global__ void __launch_bounds__(256, 6) kernel(float *output, const float *source, int steps) {
#ifdef SPILL_TO_SHARED
  asm volatile(".pragma \"enable_smem_spilling\";");
#endif
  float values[count];
#pragma unroll
  for (int i = 0; i < count; i++) values[i] = source[threadIdx.x + i * 256];
  __syncthreads();
  for (int step = 0; step < steps; step++) {
#pragma unroll
    for (int i = 0; i < count; i++) values[i] = values[i] * values[(i + 7) % count] + source[step];
  }
#pragma unroll
  for (int i = 0; i < count; i++) output[threadIdx.x + i * 256] = values[i];
}
CUDA

for option in -DSPILL_TO_LOCAL -DSPILL_TO_SHARED; do
  nvcc -cubin -arch=sm_90 -Xptxas -v "$option" "$work/kernel.cu" -o "$work/kernel.cubin" 2>"$work/log"
  echo "nvcc $option"
  grep -oE '[0-9]+ bytes spill stores|[0-9]+ registers|[0-9]+ bytes smem' "$work/log"
  nvdisasm -c "$work/kernel.cubin" | grep -oE '\<(LDL|STL|LDS|STS)\>' | sort | uniq -c | awk '{ print $1, $2 }'
done | tee "$work/seen"

expected='nvcc -DSPILL_TO_LOCAL
120 bytes spill stores
40 registers
32 LDL
29 STL
nvcc -DSPILL_TO_SHARED
0 bytes spill stores
40 registers
18432 bytes smem
39 LDS
38 STS'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
