#!/usr/bin/env bash
# Guess: cluster.sync() leaves L1 as __syncthreads() does. So does an atomic in shared memory, of which the CUDA guide and
# libcu++ say nothing about L1.
# What happens: cluster.sync() waits with CCTL.IVALL, which invalidates the SM's L1, and sends all stores to L2 before, by
# MEMBAR.ALL.GPU. A relaxed arrival saves the latter. An acquire of a variable in shared memory invalidates L1, too, unless
# its scope is the block: with cuda::std::atomic_ref in each turn of a waiting loop. Its default order does so twice, and
# a release waits for stores to reach the system. Only the block can see this variable.
# Version: nvcc and nvdisasm 13.5.37, libcu++ of nvidia-cuda-cccl 13.3.5.0.6, sm_90 and sm_100. Seen on 30 November 2026.
# Why it matters: what other warps read of global memory before is read from L2 again. The kernel's own loads do not
# change, so no count of requests or sectors of loads explains it. cuda::thread_scope_block, or atomicAdd(), avoids it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
#include <cooperative_groups.h>
#include <cuda/atomic>
#define KERNEL(NAME, BODY) \
  extern "C" __global__ void NAME(const float *input, float *output) { \
    __shared__ int flag; \
    if (threadIdx.x == 0) flag = 0; \
    const float value = input[threadIdx.x]; \
    __syncthreads(); \
    BODY; \
    output[threadIdx.x] = value + input[threadIdx.x + 1] + flag; \
  }
#define BLOCK_FLAG cuda::atomic_ref<int, cuda::thread_scope_block>(flag)
#define FLAG cuda::std::atomic_ref<int>(flag)
KERNEL(block_barrier, __syncthreads())
KERNEL(cluster_barrier, cooperative_groups::this_cluster().sync())
KERNEL(cluster_relaxed, __cluster_barrier_arrive_relaxed(); __cluster_barrier_wait())
KERNEL(block_loop, while (BLOCK_FLAG.load(cuda::std::memory_order_acquire)))
KERNEL(standard_loop, while (FLAG.load(cuda::std::memory_order_acquire)))
KERNEL(standard_default, while (FLAG.load()))
KERNEL(standard_add, FLAG.fetch_add(1))
KERNEL(standard_release, FLAG.store(1, cuda::std::memory_order_release))
KERNEL(atomic_add, atomicAdd(&flag, 1))
CUDA

for architecture in sm_90 sm_100; do
  nvcc -std=c++17 -cubin "-arch=$architecture" "$work/kernels.cu" -o "$work/kernels.cubin"
  nvdisasm -c "$work/kernels.cubin" >"$work/listing"
  for kernel in $(sed -n 's/^KERNEL(\(\w*\),.*/\1/p' "$work/kernels.cu"); do
    sed -n "/^\.text\.$kernel:/,/^\/\/---/p" "$work/listing" | sed '0,/BAR\.SYNC/d' |
      grep -oE '\b(LD|ST|ATOM|ATOMS|MEMBAR|UCGABAR|CCTL)[._][A-Z0-9_.]*' |
      awk -v line="$architecture $kernel:" '{ line = line " " $1 } END { print line }'
  done
done | tee "$work/seen"

expected=$(for architecture in sm_90 sm_100; do
  echo "block_barrier:
cluster_barrier: MEMBAR.ALL.GPU UCGABAR_ARV UCGABAR_WAIT CCTL.IVALL
cluster_relaxed: UCGABAR_ARV UCGABAR_WAIT CCTL.IVALL
block_loop: LD.E.STRONG.SM
standard_loop: LD.E.STRONG.SYS CCTL.IVALL
standard_default: MEMBAR.SC.SYS CCTL.IVALL LD.E.STRONG.SYS CCTL.IVALL
standard_add: MEMBAR.SC.SYS CCTL.IVALL ATOM.E.ADD.S32.STRONG.SYS CCTL.IVALL
standard_release: MEMBAR.ALL.SYS ST.E.STRONG.SYS
atomic_add: ATOMS.POPC.INC.32" | sed "s/^/$architecture /"
done)
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
