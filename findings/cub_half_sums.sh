#!/usr/bin/env bash
# Guess: cub::DeviceReduce::Sum() loads 16 bytes of an aligned array at once, whichever number type it sums.
# What happens: of float and double it does. Of short it loads 8 bytes and of char 4, since a vector is four elements at
# most. Of __half and __nv_bfloat16 it loads single elements: 2 bytes a lane, so a request touches 2 sectors.
# Version: CUB of nvidia-cuda-cccl 13.3.5.0.6, nvcc and nvdisasm 13.5.37, sm_90.
# Why it matters: a sum of halves makes 4 times the requests of one of as many shorts. Sectors do not show it: each
# request uses all of its 2 sectors. Only the number of requests does.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/sum.cu" <<'CUDA'
#include <cub/device/device_reduce.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

void sum(void *storage, size_t size, const NUMBER *numbers, NUMBER *output, int n) {
  cub::DeviceReduce::Sum(storage, size, numbers, output, n);
}
CUDA

# list_loads NUMBER: kinds of global loads of the kernel for many blocks. Those of one element stand beside vectors, for
# arrays that are not aligned and for the last tile.
list_loads() {
  nvcc -cubin -arch=sm_90 -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" -DNUMBER="$1" \
    "$work/sum.cu" -o "$work/sum.cubin"
  nvdisasm -c "$work/sum.cubin" | sed -n '/^\.text\..*DeviceReduceKernel/,/^\.text\..*SingleTile/p' >"$work/kernel"
  echo "$1:" "$(grep -oE '\<LDG\.[.A-Z0-9]*' "$work/kernel" | sort -u | xargs)"
}

for number in float double short char __half __nv_bfloat16; do list_loads $number; done | tee "$work/seen"

expected='float: LDG.E.128.CONSTANT LDG.E.CONSTANT
double: LDG.E.128.CONSTANT LDG.E.64.CONSTANT
short: LDG.E.64.CONSTANT LDG.E.U16.CONSTANT
char: LDG.E.CONSTANT LDG.E.U8.CONSTANT
__half: LDG.E.U16.CONSTANT
__nv_bfloat16: LDG.E.U16.CONSTANT'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
