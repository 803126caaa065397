#!/usr/bin/env bash
# Guess: clang's atomic built-ins with a scope make PTX of that scope: __scoped_atomic_store_n(flag, 1, __ATOMIC_RELEASE,
# __MEMORY_SCOPE_WRKGRP) is st.release.cta, and with __MEMORY_SCOPE_DEVICE st.release.gpu.
# What happens: loads, stores, fences and compare-and-swaps have the scope of the system, whichever scope is given.
# Additions have the GPU's, also if the system's is given. A release in a block waits by MEMBAR.ALL.SYS.
# __nv_atomic_store_n() of nvcc keeps each scope.
# Version: Debian's clang 22.1.8 (on Debian 12), nvcc, ptxas and nvdisasm 13.5.37, sm_90. Seen on 1 December 2026.
# Why it matters: a flag between the threads of a block costs a fence of the whole system, and its acquire invalidates
# L1, which the block's own scope does not. A count that the host reads is added with too narrow a scope.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37
cuda="$work/packages/nvidia/cu13"
for package in clang-22 libclang-cpp22 libclang-common-22-dev libllvm22; do
  apt-get -qq -o APT::Sandbox::User=root download "$package=1:22.1.8-1~deb12u1"
done
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$work/usr/lib/x86_64-linux-gnu:$work/usr/lib/llvm-22/lib"
clang="$work/usr/lib/llvm-22/bin/clang"
"$clang" --version | head -n 1
: >curand_mtgp32_kernel.h # clang's headers include this one, of a library that is not used here.

# The same operations by each compiler's built-ins.
cat >kernels.cu <<'CUDA'
#ifdef __clang__
#define LOAD(FLAG, SCOPE) __scoped_atomic_load_n(FLAG, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_##SCOPE)
#define STORE(FLAG, SCOPE) __scoped_atomic_store_n(FLAG, 1, __ATOMIC_RELEASE, __MEMORY_SCOPE_##SCOPE)
#define ADD(FLAG, SCOPE) __scoped_atomic_fetch_add(FLAG, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_##SCOPE)
#else
#define __NV_THREAD_SCOPE_WRKGRP __NV_THREAD_SCOPE_BLOCK
#define LOAD(FLAG, SCOPE) __nv_atomic_load_n(FLAG, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_##SCOPE)
#define STORE(FLAG, SCOPE) __nv_atomic_store_n(FLAG, 1, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_##SCOPE)
#define ADD(FLAG, SCOPE) __nv_atomic_fetch_add(FLAG, 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_##SCOPE)
#endif
#define KERNELS(SCOPE)                                                                           \
  extern "C" __global__ void load_##SCOPE(int *output, int *flag) { *output = LOAD(flag, SCOPE); } \
  extern "C" __global__ void store_##SCOPE(int *flag) { STORE(flag, SCOPE); }                     \
  extern "C" __global__ void add_##SCOPE(int *flag) { ADD(flag, SCOPE); }
KERNELS(WRKGRP) KERNELS(DEVICE) KERNELS(SYSTEM)
CUDA
"$clang" -x cuda -O3 -S --cuda-device-only --cuda-gpu-arch=sm_90 --cuda-path="$cuda" -I . -w kernels.cu -o clang.ptx
"$cuda/bin/nvcc" -ptx -arch=sm_90 kernels.cu -o nvcc.ptx
for compiler in clang nvcc; do
  "$cuda/bin/ptxas" -arch=sm_90 $compiler.ptx -o $compiler.cubin
  for kernel in {load,store,add}_{WRKGRP,DEVICE,SYSTEM}; do
    echo "$compiler $kernel: $("$cuda/bin/nvdisasm" -c $compiler.cubin | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
      grep -oE '\b(LDG?\.E\.STRONG|STG?\.E\.STRONG|ATOMG?|REDG?|MEMBAR|CCTL)[.A-Z0-9]*' | xargs)"
  done
done | tee seen

expected='clang load_WRKGRP: LDG.E.STRONG.SYS CCTL.IVALL
clang load_DEVICE: LDG.E.STRONG.SYS CCTL.IVALL
clang load_SYSTEM: LDG.E.STRONG.SYS CCTL.IVALL
clang store_WRKGRP: MEMBAR.ALL.SYS STG.E.STRONG.SYS
clang store_DEVICE: MEMBAR.ALL.SYS STG.E.STRONG.SYS
clang store_SYSTEM: MEMBAR.ALL.SYS STG.E.STRONG.SYS
clang add_WRKGRP: REDG.E.ADD.STRONG.GPU
clang add_DEVICE: REDG.E.ADD.STRONG.GPU
clang add_SYSTEM: REDG.E.ADD.STRONG.GPU
nvcc load_WRKGRP: LD.E.STRONG.SM
nvcc load_DEVICE: LD.E.STRONG.GPU CCTL.IVALL
nvcc load_SYSTEM: LD.E.STRONG.SYS CCTL.IVALL
nvcc store_WRKGRP: MEMBAR.ALL.CTA ST.E.STRONG.SM
nvcc store_DEVICE: MEMBAR.ALL.GPU ST.E.STRONG.GPU
nvcc store_SYSTEM: MEMBAR.ALL.SYS ST.E.STRONG.SYS
nvcc add_WRKGRP: ATOM.E.ADD.S32.STRONG.SM
nvcc add_DEVICE: ATOM.E.ADD.S32.STRONG.GPU
nvcc add_SYSTEM: ATOM.E.ADD.S32.STRONG.SYS'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
