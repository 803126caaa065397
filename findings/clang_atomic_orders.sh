#!/usr/bin/env bash
# Guess, written after the first sign: __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) in a kernel acquires, as clang's
# loads and compare-and-swaps do, and __atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST) and __sync_fetch_and_add() order
# the accesses around them.
# What happens: exchanges, additions, minima, maxima and bitwise operations have no order: `atom.global.exch.b32`, which
# is relaxed and of the GPU's scope, with no fence and no invalidation of L1. Loads, stores and compare-and-swap keep
# their order and the scope of the system. So does the loop that an addition of 16 bits becomes.
# Version: Debian's clang 22.1.8 (on Debian 12), ptxas and nvdisasm 13.5.37, sm_90. Seen on 1 December 2026.
# Why it matters: a lock by exchange lets its holder read L1 as it was before the lock was taken, and a count by release
# is seen before the data that it announces. Machine code has REDG alone. The same lock by compare-and-swap is right.
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

cat >kernels.cu <<'CUDA'
#define ADD(NAME, TYPE, STATEMENT) \
  extern "C" __global__ void NAME(TYPE *count, int *data) { data[0] = 1; STATEMENT; data[1] = 2; }
ADD(add_release, int, __atomic_fetch_add(count, 1, __ATOMIC_RELEASE))
ADD(add_seq_cst, int, __atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST))
ADD(add_float, float, __atomic_fetch_add(count, 1.0f, __ATOMIC_SEQ_CST))
ADD(add_64_bits, long, __atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST))
ADD(add_16_bits, unsigned short, __atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST))
ADD(add_sync, int, __sync_fetch_and_add(count, 1))
ADD(max_seq_cst, int, __atomic_fetch_max(count, 1, __ATOMIC_SEQ_CST))
ADD(or_seq_cst, int, __atomic_fetch_or(count, 1, __ATOMIC_SEQ_CST))
extern "C" __global__ void lock_by_exchange(int *lock, int *data) {
  while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) {}
  data[0] += 1;
  __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}
extern "C" __global__ void lock_by_swap(int *lock, int *data) {
  int free = 0;
  while (!__atomic_compare_exchange_n(lock, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) free = 0;
  data[0] += 1;
  __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}
CUDA
"$clang" -x cuda -O3 -S --cuda-device-only --cuda-gpu-arch=sm_90 --cuda-path="$cuda" -I . -w kernels.cu -o kernels.ptx
"$cuda/bin/ptxas" -arch=sm_90 kernels.ptx -o kernels.cubin
sed -n 's/^\.visible \.entry \(.*\)(/\1/p' kernels.ptx | while read -r kernel; do
  echo "$kernel: $(sed -n "/entry $kernel(/,/^}/p" kernels.ptx | grep -oE '\b(atom|fence|st\.release)\.[a-z0-9_.]+' | xargs)" \
    "-> $("$cuda/bin/nvdisasm" -c kernels.cubin | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
      grep -oE '\b(ATOMG|REDG|MEMBAR|CCTL)[.A-Z0-9]*' | xargs)"
done | tee seen

expected='add_release: atom.global.add.u32 -> REDG.E.ADD.STRONG.GPU
add_seq_cst: atom.global.add.u32 -> REDG.E.ADD.STRONG.GPU
add_float: atom.global.add.f32 -> REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
add_64_bits: atom.global.add.u64 -> REDG.E.ADD.64.STRONG.GPU
add_16_bits: fence.sc.sys atom.acquire.sys.global.cas.b32 -> MEMBAR.SC.SYS CCTL.IVALL ATOMG.E.CAS.STRONG.SYS CCTL.IVALL
add_sync: atom.global.add.u32 -> REDG.E.ADD.STRONG.GPU
max_seq_cst: atom.global.max.s32 -> REDG.E.MAX.S32.STRONG.GPU
or_seq_cst: atom.global.or.b32 -> REDG.E.OR.STRONG.GPU
lock_by_exchange: atom.global.exch.b32 st.release.sys.global.b32 -> ATOMG.E.EXCH.STRONG.GPU MEMBAR.ALL.SYS
lock_by_swap: atom.acquire.sys.global.cas.b32 st.release.sys.global.b32 -> ATOMG.E.CAS.STRONG.SYS CCTL.IVALL MEMBAR.ALL.SYS'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
