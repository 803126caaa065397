#!/usr/bin/env bash
# Guess, after a count of BlockScan had differed: the pragma `used_bytes_mask`, by which nvcc 13 tells ptxas the bytes of
# a vector load that are used, can only save loads.
# What happens: a vector of shared memory of which three words are used is not joined with a load of the fourth word any
# more, before or behind it; without the pragma both become one LDS.128. The same holds for two neighbouring words and a
# third. nvcc splits neighbouring loads so by itself: CUB's BlockScan of 1024 threads loads the sums of its warps by 14
# instructions, and by 8 if the pragmas are deleted from the PTX.
# Version: nvcc, ptxas and nvdisasm 13.5.37, CCCL 13.3.5.0.6, sm_90.
# Why it matters: more passes over shared memory than the PTX needs. On an H200 (nvcc 13.0.88) BlockScan made 49,152
# wavefronts of loads, where 36,864 suffice.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
ptxas --version | grep release

# list_loads: the loads from shared memory in the machine code of the PTX, each kind with its number
list_loads() {
  ptxas -arch=sm_90 "$work/kernel.ptx" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" | grep -oE '\<LDS[.A-Z0-9]*' | sort | uniq -c | xargs
}

# load_words WORDS OFFSET [MASK]: a load of four words of which WORDS are stored, and a load of the word at OFFSET
load_words() {
  stores=$(for word in $1; do echo "st.global.b32 [%output+$((4 * word))], %v$word;"; done)
  cat >"$work/kernel.ptx" <<PTX
.version 9.0
.target sm_90
.address_size 64
.shared .align 16 .b8 tile[4096];
.visible .entry kernel(.param .u64 output, .param .u32 n) {
  .reg .b64 %output;
  .reg .b32 %place, %base, %other, %v<4>;
  ld.param.u64 %output, [output];
  cvta.to.global.u64 %output, %output;
  ld.param.u32 %place, [n];
  mov.u32 %base, tile;
  shl.b32 %place, %place, 4;
  add.u32 %place, %place, %base;
  ${3:+.pragma \"used_bytes_mask $3\";}
  ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%place];
  ld.shared.b32 %other, [%place+$2];
  $stores
  st.global.b32 [%output+64], %other;
  ret;
}
PTX
  list_loads
}

cat >"$work/scan.cu" <<'CUDA'
#include <cub/block/block_scan.cuh>
__global__ void scan(const int *input, int *output) {
  using Scan = cub::BlockScan<int, 1024, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename Scan::TempStorage storage;
  int value = input[threadIdx.x], total;
  Scan(storage).ExclusiveSum(value, value, total);
  output[threadIdx.x] = value + total;
}
CUDA
nvcc -ptx -arch=sm_90 -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$work/scan.cu" -o "$work/scan.ptx"

{
  echo "x y w, then z: $(load_words '0 1 3' 8 61695), without the pragma $(load_words '0 1 3' 8)"
  echo "x y, then z: $(load_words '0 1' 8 255), without the pragma $(load_words '0 1' 8)"
  cp "$work/scan.ptx" "$work/kernel.ptx"
  echo "BlockScan: $(list_loads)"
  grep -v used_bytes_mask "$work/scan.ptx" >"$work/kernel.ptx"
  echo "BlockScan, without the pragmas: $(list_loads)"
} | tee "$work/seen"

expected='x y w, then z: 1 LDS 1 LDS.128, without the pragma 1 LDS.128
x y, then z: 1 LDS 1 LDS.64, without the pragma 1 LDS.128
BlockScan: 6 LDS 8 LDS.128
BlockScan, without the pragmas: 8 LDS.128'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
