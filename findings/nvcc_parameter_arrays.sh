#!/usr/bin/env bash
# Guess, written after the first sign: `batch.pointers[blockIdx.y][i]`, where a kernel takes a struct of pointers by
# value, reads one pointer from the constant bank, as `batch.scales[blockIdx.y]` of floats reads one float.
# What happens: each thread copies the whole array to local memory first, and loads one pointer from there: 16 STL.64 and
# an LDL.64 for 16 pointers. `const` changes nothing. With `const __grid_constant__` nothing is copied, nor of 64
# pointers. An array of floats is copied if a loop reads it, and its number of turns is known at run time only.
# Version: nvcc, ptxas and nvdisasm 13.5.37, sm_80, sm_90 and sm_100. Seen on 1 December 2026.
# Why it matters: structs of pointers are how batched kernels get their arrays. A warp that stores 128 bytes stores 4 KiB
# of local memory for it. The guide names a parameter's address as what makes a copy; no address is taken here.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/batches.cu" <<'CUDA'
template <class Item, int N> struct Batch { Item items[N]; };
#define KERNEL(NAME, QUALIFIER, ITEM, N, STATEMENT)                                                   \
  extern "C" __global__ void NAME(float *output, QUALIFIER Batch<ITEM, N> batch, int n) {             \
    int i = threadIdx.x;                                                                              \
    STATEMENT;                                                                                        \
  }
#define SUM(TURNS) float sum = 0; for (int j = 0; j < TURNS; j++) sum += batch.items[j]; output[i] = sum
KERNEL(pointers_4, , float *, 4, batch.items[blockIdx.y][i] = 1)
KERNEL(pointers_16, , float *, 16, batch.items[blockIdx.y][i] = 1)
KERNEL(pointers_16_const, const, float *, 16, batch.items[blockIdx.y][i] = 1)
KERNEL(pointers_16_grid_constant, const __grid_constant__, float *, 16, batch.items[blockIdx.y][i] = 1)
KERNEL(pointers_64, , float *, 64, batch.items[blockIdx.y][i] = 1)
KERNEL(floats_16, , float, 16, output[i] = batch.items[blockIdx.y])
KERNEL(floats_16_loop_to_n, , float, 16, SUM(n))
KERNEL(floats_16_loop_to_n_grid_constant, const __grid_constant__, float, 16, SUM(n))
KERNEL(floats_16_loop_to_16, , float, 16, SUM(16))
CUDA
for architecture in sm_80 sm_90 sm_100; do
  nvcc -cubin "-arch=$architecture" "$work/batches.cu" -o "$work/batches.cubin"
  sed -n 's/^KERNEL(\([a-z0-9_]*\).*/\1/p' "$work/batches.cu" | while read -r kernel; do
    echo "$architecture $kernel: $(nvdisasm -c "$work/batches.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
      grep -oE '\b(STL|LDL|STG?|LDG?)(\.E)?(\.[0-9]+)?\b' | LC_ALL=C sort | uniq -c | xargs)"
  done
done | tee "$work/seen"

expected='sm_80 pointers_4: 1 LDL.64 1 ST.E 4 STL.64
sm_80 pointers_16: 1 LDL.64 1 STG.E 16 STL.64
sm_80 pointers_16_const: 1 LDL.64 1 STG.E 16 STL.64
sm_80 pointers_16_grid_constant: 1 STG.E
sm_80 pointers_64: 1 STG.E
sm_80 floats_16: 1 STG.E
sm_80 floats_16_loop_to_n: 1 LDL 14 LDL.64 1 STG.E 8 STL.64
sm_80 floats_16_loop_to_n_grid_constant: 1 STG.E
sm_80 floats_16_loop_to_16: 1 STG.E
sm_90 pointers_4: 1 LDL.64 1 ST.E 4 STL.64
sm_90 pointers_16: 1 LDL.64 1 STG.E 16 STL.64
sm_90 pointers_16_const: 1 LDL.64 1 STG.E 16 STL.64
sm_90 pointers_16_grid_constant: 1 STG.E
sm_90 pointers_64: 1 STG.E
sm_90 floats_16: 1 STG.E
sm_90 floats_16_loop_to_n: 1 LDL 14 LDL.64 1 STG.E 8 STL.64
sm_90 floats_16_loop_to_n_grid_constant: 1 STG.E
sm_90 floats_16_loop_to_16: 1 STG.E
sm_100 pointers_4: 1 LDL.64 1 ST.E 4 STL.64
sm_100 pointers_16: 1 LDL.64 1 ST.E 16 STL.64
sm_100 pointers_16_const: 1 LDL.64 1 ST.E 16 STL.64
sm_100 pointers_16_grid_constant: 1 STG.E
sm_100 pointers_64: 1 STG.E
sm_100 floats_16: 1 STG.E
sm_100 floats_16_loop_to_n: 1 LDL 14 LDL.64 1 STG.E 8 STL.64
sm_100 floats_16_loop_to_n_grid_constant: 1 STG.E
sm_100 floats_16_loop_to_16: 1 STG.E'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
