#!/usr/bin/env bash
# Guess, written after the first sign: an assignment to a volatile element whose value nobody uses is one store,
# wherever it stands: in `p[i] = 1, p[j] = 2;`, in `c ? p[i] = 1 : p[j] = 2;` and in the last part of a for. So the C++
# standard says, and clang does. CUB's ThreadStore<STORE_VOLATILE>() of a float4 stores, and reads nothing.
# What happens: nvcc loads the element again after its store, if the assignment is the last of a comma or in a
# conditional. A statement of its own, or a cast to void, is a store alone. CUB folds assignments over a comma: its
# volatile store of a float4 is two stores of 8 bytes and a volatile load of the last 8; of an int3 it loads 4.
# Version: nvcc and nvdisasm 13.5.37, CUB of nvidia-cuda-cccl 13.3.5.0.6 (CCCL 3.5), sm_90, Debian's clang 22.1.8 (on
# Debian 12). Seen on 1 December 2026.
# Why it matters: a kernel that only stores has as many requests of loads. Their values are dropped, but a volatile
# load is never removed.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
cuda="$work/packages/nvidia/cu13"
for package in clang-22 libclang-cpp22 libclang-common-22-dev libllvm22; do
  apt-get -qq -o APT::Sandbox::User=root download "$package=1:22.1.8-1~deb12u1"
done
for package in *.deb; do dpkg -x "$package" .; done
libraries="$work/usr/lib/x86_64-linux-gnu:$work/usr/lib/llvm-22/lib"
"$cuda/bin/nvcc" --version | grep release
: >curand_mtgp32_kernel.h # clang's headers include this one, of a library that is not used here.

cat >assignments.cu <<'CUDA'
#define KERNEL(NAME, STATEMENT) \
  extern "C" __global__ void NAME(volatile int *p, int n) { int i = threadIdx.x; STATEMENT; }
KERNEL(statement, p[i] = 1)
KERNEL(comma, (p[i] = 1, p[i + 32] = 2))
KERNEL(comma_to_void, (p[i] = 1, (void)(p[i + 32] = 2)))
KERNEL(conditional, n ? p[i] = 1 : p[i + 32] = 2)
KERNEL(for_assigning, _Pragma("unroll 1") for (; i < n; i += 32, p[i] = 0) {})
KERNEL(for_counting, _Pragma("unroll 1") for (; i < n; p[i] = 0, i += 32) {})
CUDA
cat >stores.cu <<'CUDA'
#include <cub/thread/thread_store.cuh>
#define STORE(TYPE)                                                           \
  extern "C" __global__ void cub_##TYPE(TYPE *output, TYPE value) {           \
    cub::ThreadStore<cub::STORE_VOLATILE>(output + threadIdx.x, value);       \
  }
STORE(float) STORE(float4) STORE(int3)
CUDA
show_accesses() { # NAME: the accesses of each kernel of NAME.cubin
  "$cuda/bin/nvdisasm" -c "$1.cubin" | awk -v compiler="$1" '/^\.text\./ { name = $1; gsub(/^\.text\.|:$/, "", name) }
    match($0, /(LDG|STG)\.E[.A-Z0-9]*/) { seen[name] = seen[name] " " substr($0, RSTART, RLENGTH) }
    END { for (name in seen) print compiler " " name ":" seen[name] }' | LC_ALL=C sort
}
"$cuda/bin/nvcc" -cubin -arch=sm_90 -w assignments.cu -o nvcc.cubin
"$cuda/bin/nvcc" -cubin -arch=sm_90 -std=c++17 -w -I "$cuda/include/cccl" stores.cu -o nvcc_cub.cubin
LD_LIBRARY_PATH="$libraries" "$work/usr/lib/llvm-22/bin/clang" -x cuda -O3 -S --cuda-device-only --cuda-gpu-arch=sm_90 \
  --cuda-path="$cuda" -I . -w assignments.cu -o clang.ptx
"$cuda/bin/ptxas" -arch=sm_90 clang.ptx -o clang.cubin
for name in nvcc nvcc_cub clang; do show_accesses $name; done | tee seen

expected='nvcc comma: STG.E.STRONG.SYS STG.E.STRONG.SYS LDG.E.STRONG.SYS
nvcc comma_to_void: STG.E.STRONG.SYS STG.E.STRONG.SYS
nvcc conditional: STG.E.STRONG.SYS LDG.E.STRONG.SYS STG.E.STRONG.SYS LDG.E.STRONG.SYS
nvcc for_assigning: STG.E.STRONG.SYS LDG.E.STRONG.SYS
nvcc for_counting: STG.E.STRONG.SYS
nvcc statement: STG.E.STRONG.SYS
nvcc_cub cub_float4: STG.E.64.STRONG.SYS STG.E.64.STRONG.SYS LDG.E.64.STRONG.SYS
nvcc_cub cub_float: STG.E.STRONG.SYS
nvcc_cub cub_int3: STG.E.STRONG.SYS STG.E.STRONG.SYS STG.E.STRONG.SYS LDG.E.STRONG.SYS
clang comma: STG.E.STRONG.SYS STG.E.STRONG.SYS
clang comma_to_void: STG.E.STRONG.SYS STG.E.STRONG.SYS
clang conditional: STG.E.STRONG.SYS STG.E.STRONG.SYS
clang for_assigning: STG.E.STRONG.SYS
clang for_counting: STG.E.STRONG.SYS
clang statement: STG.E.STRONG.SYS'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
