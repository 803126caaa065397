#!/usr/bin/env bash
# Guess: cub::DeviceMemcpy::Batched() copies aligned buffers with 16 bytes a lane, as its stores do and as a loop over
# uint4 does.
# What happens: it stores 16 bytes at once, and loads 4. Each lane makes four loads of neighbouring words for a store, so
# lanes are 16 bytes apart. There is no branch for aligned sources. Accesses are generic, too: LD and ST.
# DeviceCopy::Batched() of uint4 copies with loads of 16 bytes.
# Version: CUB of nvidia-cuda-cccl 13.3.5.0.6 (CCCL 3.5), nvcc and nvdisasm 13.5.37, sm_90 and sm_100.
# Why it matters: a warp that copies 512 bytes makes four load requests of 16 sectors each, where one of 16 would do: 4
# times the requests and the sectors of a load. A batch of buffers of any type and alignment pays this.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/copies.cu" <<'CUDA'
#include <cub/device/device_copy.cuh>
#include <cub/device/device_memcpy.cuh>
void copy_bytes(void *storage, size_t size, void **sources, void **targets, size_t *bytes, int buffers) {
  cub::DeviceMemcpy::Batched(storage, size, sources, targets, bytes, buffers);
}
void copy_items(void *storage, size_t size, uint4 **sources, uint4 **targets, size_t *items, int buffers) {
  cub::DeviceCopy::Batched(storage, size, sources, targets, items, buffers);
}
extern "C" __global__ void loop(uint4 *target, const uint4 *source, int n) {
  for (int i = threadIdx.x; i < n; i += 32) target[i] = source[i];
}
CUDA
for architecture in sm_90 sm_100; do
  nvcc -cubin "-arch=$architecture" -std=c++17 -I "$work/packages/nvidia/cu13/include/cccl" "$work/copies.cu" -o "$work/copies.cubin"
  # The kernels for large buffers. Their loads of 64 bits, all LDG, are of addresses and lengths.
  while read -r name kernel; do
    nvdisasm -c "$work/copies.cubin" | sed -n "/^\.text\..*$kernel/,/^\/\/---/p" | grep -oE '\b(LDG?|STG?)\.E(\.[A-Z0-9]+)*' |
      grep -vx LDG.E.64 | sort | uniq -c | awk -v line="$architecture $name:" '{ line = line " " $1 " " $2 } END { print line }'
  done <<<'DeviceMemcpy MultiBlockBatchMemcpyKernel.*PPKv
DeviceCopy MultiBlockBatchMemcpyKernel.*PP5uint4
loop loop:'
done | tee "$work/seen"

expected='sm_90 DeviceMemcpy: 35 LD.E 109 LD.E.U8 3 LDG.E 7 ST.E.128 109 ST.E.U8
sm_90 DeviceCopy: 3 LDG.E 67 LDG.E.128 67 STG.E.128
sm_90 loop: 29 LDG.E.128 29 STG.E.128
sm_100 DeviceMemcpy: 5 LD.E 49 LD.E.U8 3 LDG.E 1 ST.E.128 49 ST.E.U8
sm_100 DeviceCopy: 3 LDG.E 16 LDG.E.128 16 STG.E.128
sm_100 loop: 29 LDG.E.128 29 STG.E.128'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
