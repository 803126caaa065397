#!/usr/bin/env bash
# Guess: nvshmemx::tile_put() reads the source tile when it is called. In a loop that changes the tile and puts it, each
# turn sends the new elements.
# What happens: by one thread's tile_put() each turn sends those from before the loop. Its loads are assembly without
# `volatile` and "memory", so nvcc takes them for arithmetic, and moves them out of the loop: past stores, __syncthreads()
# and nvshmem_quiet(). 28 loads are there for a tile of 16 floats, since 4, 8 and 16 bytes at once are prepared. Those of
# tile_put_warp() stay, as their own loop has a length of run time; so do those of tile_get().
# Version: NVSHMEM 3.8.0 (nvidia-nvshmem-cu13), nvcc 13.5.37, sm_90. Seen on 30 November 2026.
# Why it matters: halo exchanges and pipelines put the same tile again and again. The stores happen, of old data, so
# neither a profiler nor counts of the traffic between GPUs show it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-nvshmem-cu13==3.8.0 nvidia-cuda-nvcc==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
echo "NVSHMEM 3.8.0, $(nvcc --version | grep release)"

cat >kernels.cu <<'CUDA'
#include <nvshmem.h>
#include <nvshmemx.h>
using namespace nvshmemx;
using None = cuda::std::tuple<>;
__device__ auto make_tile(float *elements) { // 4 x 4
  const auto layout = make_layout(make_shape(ConstInt<4>{}, ConstInt<4>{}), make_stride(ConstInt<1>{}, ConstInt<4>{}));
  return Tensor<float, decltype(layout)>(elements, layout);
}
#define KERNEL(FUNCTION, ALGORITHM) \
  extern "C" __global__ void FUNCTION##_in_a_loop(float *source, float *destination, int peer) { \
    source += blockIdx.x * 16, destination += blockIdx.x * 16; /* a block, of one thread or warp, has a tile */ \
    const auto from = make_tile(source), to = make_tile(destination); \
    using Tile = decltype(make_tile(source)); \
    for (int step = 0; step < 100; ++step) { \
      source[threadIdx.x % 16] += 1.f; \
      __syncthreads(); \
      FUNCTION<Tile, Tile, None, tile_algo_t::ALGORITHM>(from, to, None{}, None{}, peer, 0); \
      nvshmem_quiet(); \
      __syncthreads(); \
    } \
  }
KERNEL(tile_put, PEER_PUSH_NBI)
KERNEL(tile_put_warp, PEER_PUSH_NBI)
KERNEL(tile_get, PEER_PULL_NBI)
CUDA
nvcc -ptx -rdc=true -arch=sm_90 -std=c++17 -w -I packages/nvidia/nvshmem/include -I packages/nvidia/cu13/include/cccl kernels.cu -o kernels.ptx
cat >count_loads.py <<'PYTHON'
import re
from pathlib import Path

for name, body in re.findall(r"\.entry (\w+).*?\n\{(.*?)\n\}\n", Path("kernels.ptx").read_text(), re.DOTALL):
    before, loop = body.split("\n$L", 1)
    # the kernel's own load is ld.global.f32
    before, loop = (len(re.findall(r"ld\.global\.(?:v4\.)?b\d+", part)) for part in (before, loop))
    print(f"{name}: {before} loads of the tile before the loop, {loop} in it")
PYTHON
python3 count_loads.py | tee seen

expected='tile_put_in_a_loop: 28 loads of the tile before the loop, 0 in it
tile_put_warp_in_a_loop: 0 loads of the tile before the loop, 3 in it
tile_get_in_a_loop: 0 loads of the tile before the loop, 28 in it'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
