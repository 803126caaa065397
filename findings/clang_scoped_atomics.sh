#!/usr/bin/env bash
# Guess: atomicAdd_block() and atomicAdd_system() make the same accesses as atomicAdd(), at another
# scope. So it is with nvcc: RED in global memory and ATOMS in shared memory.
# What happens: clang makes generic ones of them: ATOM, in shared memory, too, and the old value
# comes back though it is unused. Of a float it is code for each of three memories. Without a scope
# clang's are as nvcc's.
# Version: Debian's clang 22.1.8 (on Debian 12, with its g++ 12); nvcc, ptxas, nvdisasm and headers
# of CUDA 13.5.37; sm_90.
# Why it matters: the narrower scope is chosen to be cheaper. Here it returns values, and metrics
# that count RED and ATOMS are 0. The histogram's ATOMS.POPC, which counts lanes at once, is lost.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 \
  nvidia-cuda-nvdisasm==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 \
  nvidia-cuda-runtime==13.5.37
cuda="$work/packages/nvidia/cu13"
PATH="$cuda/bin:$PATH"
for package in clang-22 libclang-cpp22 libclang-common-22-dev libllvm22; do
  apt-get -qq -o APT::Sandbox::User=root download "$package=1:22.1.8-1~deb12u1"
done
for package in *.deb; do dpkg -x "$package" .; done
clang() {
  LD_LIBRARY_PATH="$work/usr/lib/x86_64-linux-gnu:$work/usr/lib/llvm-22/lib" \
    "$work/usr/lib/llvm-22/bin/clang" "$@"
}
clang --version | head -n 1
nvcc --version | grep release
: >curand_mtgp32_kernel.h # clang's headers include this one, of a library that is not used here.

cat >kernels.cu <<'CUDA'
#define GLOBAL(NAME, TYPE, ADD) extern "C" __global__ void NAME(TYPE *sums, const int *bins) \
  { ADD(sums + bins[threadIdx.x], 1); }
#define SHARED(NAME, TYPE, ADD) extern "C" __global__ void NAME(TYPE *sums, const int *bins) { \
  __shared__ TYPE tile[256]; tile[threadIdx.x] = 0; __syncthreads(); \
  ADD(tile + bins[threadIdx.x], 1); __syncthreads(); sums[threadIdx.x] = tile[threadIdx.x]; }
GLOBAL(global_int, int, atomicAdd)
GLOBAL(global_int_block, int, atomicAdd_block)
GLOBAL(global_int_system, int, atomicAdd_system)
GLOBAL(global_float, float, atomicAdd)
GLOBAL(global_float_block, float, atomicAdd_block)
SHARED(shared_int, int, atomicAdd)
SHARED(shared_int_block, int, atomicAdd_block)
CUDA
nvcc -cubin -arch=sm_90 kernels.cu -o nvcc.cubin
clang -x cuda -O3 -S --cuda-device-only --cuda-gpu-arch=sm_90 --cuda-path="$cuda" -I . -w \
  kernels.cu -o kernels.ptx
ptxas -arch=sm_90 kernels.ptx -o clang.cubin
for compiler in nvcc clang; do
  sed -nE 's/^(GLOBAL|SHARED)\(([a-z_]+),.*/\2/p' kernels.cu | while read -r kernel; do
    echo "$compiler $kernel: $(nvdisasm -c $compiler.cubin |
      sed -n "/^\.text\.$kernel:/,/^\.text/p" | grep -oE '(ATOM|RED)[GS]?\.[.A-Z0-9]*' | xargs)"
  done
done | tee seen

expected='nvcc global_int: REDG.E.ADD.STRONG.GPU
nvcc global_int_block: REDG.E.ADD.STRONG.SM
nvcc global_int_system: REDG.E.ADD.STRONG.SYS
nvcc global_float: REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
nvcc global_float_block: REDG.E.ADD.F32.FTZ.RN.STRONG.SM
nvcc shared_int: ATOMS.POPC.INC.32
nvcc shared_int_block: ATOMS.POPC.INC.32
clang global_int: REDG.E.ADD.STRONG.GPU
clang global_int_block: ATOM.E.ADD.S32.STRONG.SM
clang global_int_system: ATOM.E.ADD.S32.STRONG.SYS
clang global_float: REDG.E.ADD.F32.FTZ.RN.STRONG.GPU
clang global_float_block: ATOM.E.ADD.F32.FTZ.RN.STRONG.SM ATOMS.CAST.SPIN ATOM.E.CAST.SPIN.STRONG.SM
clang shared_int: ATOMS.POPC.INC.32
clang shared_int_block: ATOM.E.ADD.S32.STRONG.SM'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
