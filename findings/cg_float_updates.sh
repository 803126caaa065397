#!/usr/bin/env bash
# Guess: cooperative_groups::reduce_update_async() of a float sums in the group, and then adds once, by one atomic
# addition, as it does of an int, as atomicAdd() and as cuda::atomic's fetch_add().
# What happens: of integers. Of float and double it is a load and a loop of compare-and-swap. exclusive_scan_update()
# of a float is, too. reduce() and one atomicAdd() by lane 0 are one REDG.
# Version: cooperative_groups' headers of nvidia-cuda-runtime 13.5.37, CCCL 13.3.5.0.6, nvcc and nvdisasm 13.5.37, sm_90
# and sm_100. Seen on 1 December 2026.
# Why it matters: all warps of a grid meet at the sum. One whose swap fails goes round again, so the numbers of loads
# and atomics depend on luck, and grow with the number of warps. The guide offers the function to save atomics.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/sums.cu" <<'CUDA'
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
namespace cg = cooperative_groups;
#define UPDATE(TYPE)                                                                         \
  extern "C" __global__ void update_##TYPE(cuda::atomic<TYPE, cuda::thread_scope_device> *sum, \
                                           const TYPE *values) {                             \
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());                            \
    cg::reduce_update_async(warp, *sum, values[threadIdx.x], cg::plus<TYPE>());              \
  }
UPDATE(int) UPDATE(unsigned) UPDATE(float) UPDATE(double)
extern "C" __global__ void scan_float(cuda::atomic<float, cuda::thread_scope_device> *sum, float *values) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  values[threadIdx.x] = cg::exclusive_scan_update(warp, *sum, values[threadIdx.x]);
}
extern "C" __global__ void add_float(float *sum, const float *values) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  float mine = cg::reduce(warp, values[threadIdx.x], cg::plus<float>());
  if (warp.thread_rank() == 0) atomicAdd(sum, mine);
}
CUDA
for architecture in sm_90 sm_100; do
  nvcc -cubin "-arch=$architecture" -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$work/sums.cu" -o "$work/sums.cubin"
  for kernel in update_int update_unsigned update_float update_double scan_float add_float; do
    echo "$architecture $kernel: $(nvdisasm -c "$work/sums.cubin" | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
      grep -oE '\b(LD\.E(\.[0-9]+)?\.STRONG|ATOMG?|REDG)(\.[A-Z0-9]+)*' | sort -u | xargs)"
  done
done | tee "$work/seen"

expected='sm_90 update_int: ATOM.E.ADD.S32.STRONG.GPU
sm_90 update_unsigned: ATOM.E.ADD.STRONG.GPU
sm_90 update_float: ATOM.E.CAS.STRONG.GPU LD.E.STRONG.GPU
sm_90 update_double: ATOM.E.CAS.64.STRONG.GPU LD.E.64.STRONG.GPU
sm_90 scan_float: ATOM.E.CAS.STRONG.GPU LD.E.STRONG.GPU
sm_90 add_float: REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
sm_100 update_int: ATOM.E.ADD.S32.STRONG.GPU
sm_100 update_unsigned: ATOM.E.ADD.STRONG.GPU
sm_100 update_float: ATOM.E.CAS.STRONG.GPU LD.E.STRONG.GPU
sm_100 update_double: ATOM.E.CAS.64.STRONG.GPU LD.E.64.STRONG.GPU
sm_100 scan_float: ATOM.E.CAS.STRONG.GPU LD.E.STRONG.GPU
sm_100 add_float: REDG.E.ADD.F32.FTZ.RN.STRONG.GPU'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
