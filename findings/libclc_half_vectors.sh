#!/usr/bin/env bash
# Guess, written after the first sign: vloada_half4() of OpenCL C is one load of 8 bytes, as its address must be a
# multiple of 8, and vstorea_half4() is one store of 8.
# What happens: four of 2 bytes each, 8 bytes apart, as vload_half4() is. vloada_half16() is 16 of 2 bytes, 32 bytes
# apart. A load of a ushort4 is one of 8 bytes, and one of a ushort16 two of 16.
# Version: libclc 22 and clang 22.1.8 of Debian (on Debian 12), ptxas and nvdisasm 13.5.37, sm_90. Seen on 1 December
# 2026.
# Why it matters: these functions are how OpenCL reads float16 without its extension. Each of the four loads touches the
# 8 sectors that one load of 8 bytes would: 4 times the requests and sectors. For 16 halves both are 8 times as many.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
cuda="$work/packages/nvidia/cu13"
for package in clang-22 libclang-cpp22 libclang-common-22-dev libllvm22 libclc-22; do
  apt-get -qq -o APT::Sandbox::User=root download "$package=1:22.1.8-1~deb12u1"
done
for package in *.deb; do dpkg -x "$package" .; done
export LD_LIBRARY_PATH="$work/usr/lib/x86_64-linux-gnu:$work/usr/lib/llvm-22/lib"
clang="$work/usr/lib/llvm-22/bin/clang"
"$clang" --version | head -n 1

cat >kernels.cl <<'CL'
#define I get_global_id(0)
kernel void load_half4(global float4 *output, global const half *source) { output[I] = vload_half4(I, source); }
kernel void loada_half4(global float4 *output, global const half *source) { output[I] = vloada_half4(I, source); }
kernel void loada_half16(global float16 *output, global const half *source) { output[I] = vloada_half16(I, source); }
kernel void storea_half4(global half *output, global const float4 *source) { vstorea_half4(source[I], I, output); }
kernel void load_ushort4(global float4 *output, global const ushort4 *source) { output[I] = convert_float4(source[I]); }
kernel void load_ushort16(global float16 *output, global const ushort16 *source) {
  output[I] = convert_float16(source[I]);
}
CL
"$clang" --target=nvptx64-nvidia-nvcl -march=sm_90 -cl-std=CL2.0 -O3 -x cl -w -Xclang -finclude-default-header \
  -Xclang -mlink-builtin-bitcode -Xclang usr/lib/clc/nvptx64--nvidiacl.bc -S kernels.cl -o kernels.ptx 2>log
"$cuda/bin/ptxas" -arch=sm_90 kernels.ptx -o kernels.cubin
sed -n 's/^kernel void \([a-z0-9_]*\)(.*/\1/p' kernels.cl | while read -r kernel; do
  echo "$kernel: $("$cuda/bin/nvdisasm" -c kernels.cubin | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
    grep -oE '\b(LDG|STG)[.A-Z0-9]*' | uniq -c | xargs)"
done | tee seen

expected='load_half4: 4 LDG.E.U16 1 STG.E.128
loada_half4: 4 LDG.E.U16 1 STG.E.128
loada_half16: 16 LDG.E.U16 4 STG.E.128
storea_half4: 1 LDG.E.128 4 STG.E.U16
load_ushort4: 1 LDG.E.64 1 STG.E.128
load_ushort16: 2 LDG.E.128 4 STG.E.128'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
