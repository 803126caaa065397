#!/usr/bin/env bash
# Guess, written after the first sign: `output[i].xyz = value;` of OpenCL C stores three components of a float4 and
# reads nothing of it, and `output[i].x = a; output[i].y = b;` stores two.
# What happens: the other components are loaded first, and all 16 bytes are stored: w is written back as it was. So it is
# for x alone, if its value is the x of a float4; from an array of floats it is one store of 4 bytes. vstore3() and
# vstore2() to the same addresses store what they are given.
# Version: Debian's clang 22.1.8 and libclc 22 (on Debian 12), ptxas and nvdisasm 13.5.37, sm_90. Seen on 1 December
# 2026. POCL's front end is clang, too; it was not run.
# Why it matters: a kernel that only writes reads its output, too, and writes up to four times the bytes. A kernel that
# writes w meanwhile, as a mass beside a position, loses its value.
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
kernel void store_x(global float4 *output, global const float4 *source) { output[I].x = source[I].x; }
kernel void store_x_of_floats(global float4 *output, global const float *source) { output[I].x = source[I]; }
kernel void store_x_then_y(global float4 *output, global const float4 *source) {
  output[I].x = source[I].x; output[I].y = source[I].y;
}
kernel void store_xy(global float4 *output, global const float4 *source) { output[I].xy = source[I].xy; }
kernel void store_xyz(global float4 *output, global const float4 *source) { output[I].xyz = source[I].xyz; }
kernel void store_xyzw(global float4 *output, global const float4 *source) { output[I].xyzw = source[I]; }
kernel void vstore2_xy(global float4 *output, global const float4 *source) {
  vstore2(source[I].xy, 0, (global float *)(output + I));
}
kernel void vstore3_xyz(global float4 *output, global const float4 *source) {
  vstore3(source[I].xyz, 0, (global float *)(output + I));
}
CL
"$clang" --target=nvptx64-nvidia-nvcl -march=sm_90 -cl-std=CL2.0 -O3 -x cl -w -Xclang -finclude-default-header \
  -Xclang -mlink-builtin-bitcode -Xclang usr/lib/clc/nvptx64--nvidiacl.bc -S kernels.cl -o kernels.ptx 2>log
"$cuda/bin/ptxas" -arch=sm_90 kernels.ptx -o kernels.cubin
sed -n 's/^kernel void \([a-z0-9_]*\)(.*/\1/p' kernels.cl | while read -r kernel; do
  echo "$kernel: $("$cuda/bin/nvdisasm" -c kernels.cubin | sed -n "/^\.text\.$kernel:/,/^\/\/---/p" |
    grep -oE '\b(LDG|STG)[.A-Z0-9]*' | uniq -c | xargs)"
done | tee seen

expected='store_x: 1 LDG.E.128 1 LDG.E 1 STG.E.128
store_x_of_floats: 1 LDG.E 1 STG.E
store_x_then_y: 1 LDG.E.128 1 LDG.E 1 STG.E.128 1 LDG.E 1 STG.E.128
store_xy: 2 LDG.E.64 1 STG.E.128
store_xyz: 1 LDG.E.128 1 LDG.E 1 STG.E.128
store_xyzw: 1 LDG.E.128 1 STG.E.128
vstore2_xy: 1 LDG.E.64 2 STG.E
vstore3_xyz: 1 LDG.E.128 3 STG.E'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
