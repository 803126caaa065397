#!/usr/bin/env bash
# Guess: cute::copy() of CUTLASS makes the same accesses of contiguous rows, whether their stride is known at compile time
# or not. From a `const float *` they are of 4 bytes, as CuTe DSL's, since nothing promises more.
# What happens: with a static stride it assumes an alignment of 16 bytes. A tile of 2 rows of 8 floats is 4 accesses of
# 16 bytes. With a stride of run time it assumes an element's alignment, and the tile is 16 accesses of 4. Row by row
# each layout is static, and the accesses are of 16 bytes again.
# Version: CUTLASS 4.2.0.0 (nvidia-cutlass), nvcc and nvdisasm 13.5.37, sm_90.
# Why it matters: a stride that moves from a template to an argument changes the number of requests, with the same
# addresses. A benchmark of fixed sizes measures the faster one. And a fixed size promises an alignment in silence.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 \
  nvidia-cutlass==4.2.0.0
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cute/tensor.hpp>

using namespace cute;

template <class Source, class Values> __device__ void copy_rows(const Source &source, Values &values) {
  for (int row = 0; row < 2; row++) copy(source(row, _), values(row, _));
}

// Each thread copies two rows of 8 floats to registers. ROWS is the stride between rows.
#define KERNEL(NAME, ROWS, COPY) extern "C" __global__ void NAME(float *output, const float *source, int run_time) { \
    auto matrix = make_tensor(make_gmem_ptr(source), make_layout(make_shape(_256{}, _64{}), make_stride(ROWS, _1{}))); \
    auto tile = local_tile(matrix, make_shape(_2{}, _8{}), make_coord(int(threadIdx.x), 0)); \
    auto values = make_tensor<float>(make_layout(make_shape(_2{}, _8{}), make_stride(_8{}, _1{}))); \
    COPY(tile, values); \
    for (int i = 0; i < 16; i++) output[128 * i + threadIdx.x] = values(i / 8, i % 8); \
  }
KERNEL(static_stride, _64{}, copy)
KERNEL(run_time_stride, run_time, copy)
KERNEL(run_time_stride_by_rows, run_time, copy_rows)
KERNEL(run_time_stride_aligned, run_time, copy_aligned)
CUDA

nvcc -cubin -arch=sm_90 -std=c++17 --expt-relaxed-constexpr -w -I "$work/packages/cutlass_library/source/include" \
  -I "$work/packages/nvidia/cu13/include/cccl" "$work/kernels.cu" -o "$work/kernels.cubin"
for kernel in static_stride run_time_stride run_time_stride_by_rows run_time_stride_aligned; do
  nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
    grep -oE 'LDG[.A-Z0-9]*' | sort | uniq -c | awk -v name="$kernel:" '{ name = name " " $1 " " $2 } END { print name }'
done | tee "$work/seen"

expected='static_stride: 4 LDG.E.128
run_time_stride: 16 LDG.E
run_time_stride_by_rows: 4 LDG.E.128
run_time_stride_aligned: 4 LDG.E.128'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
