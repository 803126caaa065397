#!/usr/bin/env bash
# Guess: clang's __ldg() reads through the read-only path, of any type: `ld.global.nc`.
# What happens: of scalars alone. A float4, an int4 or a uchar4 is read by a plain `ld.global` of
# the right width. So is __ldg(source).x. A `const float4 *__restrict__` whose components are used
# is read by `.nc` without __ldg(). If it is only copied, it is not.
# Version: Debian's clang 22.1.8 (on Debian 12, with its g++ 12), headers of CUDA 13.5.37, ptxas and
# nvdisasm 13.5.37, sm_90.
# Why it matters: __ldg() is written to ask for this path. Machine code has LDG without .CONSTANT. A
# benchmark of the two ways to load compares one with itself. With nvcc each keeps .nc.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 \
  nvidia-cuda-nvdisasm==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 \
  nvidia-cuda-runtime==13.5.37
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
#define KERNEL(NAME, OUTPUT, SOURCE, VALUE) extern "C" __global__ \
  void NAME(OUTPUT *__restrict__ output, SOURCE source) { output[threadIdx.x] = VALUE; }
#define LDG(TYPE) KERNEL(ldg_##TYPE, TYPE, const TYPE *, __ldg(source + threadIdx.x))
LDG(float) LDG(double) LDG(float2) LDG(float4) LDG(int4) LDG(double2) LDG(uchar4)
KERNEL(ldg_of_x, float, const float4 *, __ldg(source + threadIdx.x).x)
__device__ float sum(float4 value) { return value.x + value.y + value.z + value.w; }
KERNEL(restrict_sum, float, const float4 *__restrict__, sum(source[threadIdx.x]))
KERNEL(restrict_copy, float4, const float4 *__restrict__, source[threadIdx.x])
CUDA

"$clang" -x cuda -O3 -S --cuda-device-only --cuda-gpu-arch=sm_90 --cuda-path="$cuda" -I . -w \
  kernels.cu -o kernels.ptx
"$cuda/bin/ptxas" -arch=sm_90 kernels.ptx -o kernels.cubin
sed -n 's/^\.visible \.entry \(.*\)(/\1/p' kernels.ptx | while read -r kernel; do
  echo "$kernel: $("$cuda/bin/nvdisasm" -c kernels.cubin | sed -n "/^\.text\.$kernel:/,/EXIT/p" |
    grep -oE 'LDG[.A-Z0-9]*' | xargs)"
done | tee seen

expected='ldg_float: LDG.E.CONSTANT
ldg_double: LDG.E.64.CONSTANT
ldg_float2: LDG.E.64
ldg_float4: LDG.E.128
ldg_int4: LDG.E.128
ldg_double2: LDG.E.128
ldg_uchar4: LDG.E
ldg_of_x: LDG.E
restrict_sum: LDG.E.128.CONSTANT
restrict_copy: LDG.E.64 LDG.E.64'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
