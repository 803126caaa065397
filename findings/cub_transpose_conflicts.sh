#!/usr/bin/env bash
# Guess: BLOCK_LOAD_TRANSPOSE of CUB's BlockLoad has no bank conflicts. BlockExchange, which it uses, promises none "for
# most types", thanks to padding.
# What happens: only powers of two above 4 are padded. Other counts of items are read back 16 bytes at once. Of 24
# floats, 4 doubles or 12 doubles a thread, such a load takes 8 passes instead of 4. Of 12 or 20 floats it takes 4.
# DeviceScan on sm_90 has 24 floats a thread with cuda::std::plus, and takes 8 passes to load and to store. With a plus
# of one's own it has 15 floats and single words, without conflicts.
# Version: CUB of nvidia-cuda-cccl 13.3.5.0.6, nvcc and nvdisasm 13.5.37, sm_90.
# Why it matters: bank conflicts appear with counts as usual as 4 doubles. A scan with an operator of one's own is no
# measure of the scan with CUDA's: its tiles, its widths and its conflicts differ.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/load.cu" <<'CUDA'
#include <cub/block/block_load.cuh>

extern "C" __global__ void load(NUMBER *output, const NUMBER *source) {
  using Load = cub::BlockLoad<NUMBER, 128, THREAD_ITEMS, cub::BLOCK_LOAD_TRANSPOSE>;
  __shared__ typename Load::TempStorage storage;
  NUMBER items[THREAD_ITEMS], sum = 0;
  Load(storage).Load(source + blockIdx.x * 128 * THREAD_ITEMS, items);
  for (int i = 0; i < THREAD_ITEMS; i++) sum = 2 * sum + items[i];
  output[blockIdx.x * 128 + threadIdx.x] = sum;
}
CUDA
cat >"$work/scan.cu" <<'CUDA'
#include <cub/device/device_scan.cuh>

struct own_plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

void scan(void *storage, size_t size, const float *source, float *output, int n) {
  cub::DeviceScan::InclusiveScan(storage, size, source, output, OPERATOR{}, n);
}
CUDA
cat >"$work/count_passes.py" <<'PYTHON'
import sys
from collections import Counter

width, count, size, padded = map(int, sys.argv[1:])
passes = 0
for first in range(0, 32, 128 // width):  # the lanes whose 128 bytes one pass may serve
    banks = Counter()
    for lane in range(first, first + 128 // width):
        word = lane * count * size // 4
        word += padded * (word // 32)
        banks.update((word + i) % 32 for i in range(width // 4))
    passes += max(banks.values())
print(passes)
PYTHON

compile() {
  nvcc -cubin -arch=sm_90 -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$@" -o "$work/kernel.cubin"
  nvdisasm -c "$work/kernel.cubin" >"$work/listing"
}

# show_load NUMBER COUNT SIZE PADDED: the loads from shared memory, and the passes of one of them
show_load() {
  compile -DNUMBER="$1" -DTHREAD_ITEMS="$2" "$work/load.cu"
  kind=$(grep -oE '\<LDS[.0-9]*' "$work/listing" | sort -u)
  case $kind in LDS.128) width=16 ;; LDS.64) width=8 ;; *) width=4 ;; esac
  echo "$2 $1: $(grep -c '\<LDS' "$work/listing") $kind," \
    "$(python3 "$work/count_passes.py" $width "$2" "$3" "$4") passes each"
}

# show_scan OPERATOR: a thread's items, and how it stores them to shared memory. Two tiles of code load each item.
show_scan() {
  compile -DOPERATOR="$1" "$work/scan.cu"
  sed -n '/^\.text\..*DeviceScanKernel/,/^\.text\..*Init/p' "$work/listing" >"$work/scan"
  items=$(($(grep -c '\<LDG' "$work/scan") / 2))
  if grep -q 'STS\.128' "$work/scan"; then width=16; else width=4; fi
  echo "scan with $1: $items items, $width bytes a store," \
    "$(python3 "$work/count_passes.py" $width $items 4 0) passes each"
}

{
  show_load float 12 4 0
  show_load float 16 4 1
  show_load float 20 4 0
  show_load float 24 4 0
  show_load double 3 8 0
  show_load double 4 8 0
  show_load double 12 8 0
  show_scan 'cuda::std::plus<>'
  show_scan own_plus
} | tee "$work/seen"

expected='12 float: 3 LDS.128, 4 passes each
16 float: 16 LDS, 1 passes each
20 float: 5 LDS.128, 4 passes each
24 float: 6 LDS.128, 8 passes each
3 double: 3 LDS.64, 2 passes each
4 double: 2 LDS.128, 8 passes each
12 double: 6 LDS.128, 8 passes each
scan with cuda::std::plus<>: 24 items, 16 bytes a store, 8 passes each
scan with own_plus: 15 items, 4 bytes a store, 1 passes each'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
