#!/usr/bin/env bash
# Guess: the methods of Atomic<int> are atomic accesses with the MemoryOrder that they are given: load() with Acquire
# is ld.acquire, store() with Release st.release, and two calls of load() are two loads.
# What happens: in CUDA code load() and store() are plain accesses, and each order is dropped, without a fence. Two
# calls of load() that are subtracted are no load, but the constant 0. add() with Release is a relaxed atomic.
# reduceAdd() names global memory, for a counter in groupshared memory, too.
# Version: slangc 2026.14.1 (slangtorch 1.3.22), nvcc 13.5.37, sm_90. Seen on 30 November 2026.
# Why it matters: flags, tickets and look-back scans rest on these orders. A kernel that is right on Vulkan may read old
# data, or miss the flag that it waits for.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" slangtorch==1.3.22 nvidia-cuda-nvcc==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$work/packages/slangtorch/bin:$PATH"
export LD_LIBRARY_PATH="$work/packages/slangtorch/bin"
chmod +x "$work/packages/slangtorch/bin/slangc"
slangc -v 2>&1
nvcc --version | grep release

cat >"$work/kernels.slang" <<'SLANG'
groupshared Atomic<int> total;
#define KERNEL(NAME, BODY) [shader("compute")] [numthreads(128, 1, 1)] void NAME( \
  uint3 thread : SV_DispatchThreadID, uniform RWStructuredBuffer<Atomic<int>> flags, uniform RWStructuredBuffer<int> data) \
  { uint i = thread.x; BODY; }
KERNEL(load_acquire, data[i] = flags[0].load(MemoryOrder.Acquire))
KERNEL(store_release, data[i] = 7; flags[0].store(1, MemoryOrder.Release))
KERNEL(add_release, data[i] = 7; data[i + 128] = flags[0].add(1, MemoryOrder.Release))
KERNEL(reduce_release, data[i] = 7; flags[0].reduceAdd(1, MemoryOrder.Release))
KERNEL(reduce_groupshared, total.reduceAdd(data[i]))
KERNEL(load_twice, int before = flags[0].load(MemoryOrder.Acquire); data[i] = flags[0].load(MemoryOrder.Acquire) - before)
SLANG

cd "$work"
for kernel in load_acquire store_release add_release reduce_release reduce_groupshared load_twice; do
  slangc kernels.slang -entry $kernel -stage compute -target cuda -o kernel.cu
  nvcc -ptx -arch=sm_90 -w kernel.cu -o kernel.ptx
  sed -n '/^\.visible \.entry/,$p' kernel.ptx |
    grep -oE '\bbra\b|\b(ld|st)\.(global|shared|volatile|acquire|release|relaxed)[a-z0-9_.]*|\b(atom|red|fence|membar)\.[a-z0-9_.]+' |
    xargs echo "$kernel:"
done | tee seen

expected='load_acquire: ld.global.u32 st.global.u32
store_release: st.global.u32 st.global.u32
add_release: st.global.u32 atom.global.add.u32 st.global.u32
reduce_release: st.global.u32 red.relaxed.gpu.global.add.s32
reduce_groupshared: ld.global.u32 red.relaxed.gpu.global.add.s32
load_twice: st.global.u32'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
