#!/usr/bin/env bash
# Guess: a struct that alignas() aligns to its size of 4, 8 or 16 bytes is copied with one load and one store. The
# CUDA C++ programming guide says so of any data of these sizes. The same source makes the same accesses on each chip.
# What happens: one and one on sm_90. From sm_100 on the members decide, unless all have one size, as in {float; int}.
# An access of 16 bytes becomes two of 8, and one of 4 two of 2. A load of 8 bytes becomes two of 4. {float; float;
# float} of 16 bytes, the guide's example, is loaded whole and its padding once more.
# Version: nvcc and nvdisasm 13.5.37, sm_90, sm_100 and sm_120.
# Why it matters: an H100 and a B200 run other accesses of one source. The lanes of the two lie apart by the struct's
# size: each request touches all sectors and uses half of their bytes.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

cat >"$work/kernels.cu" <<'CUDA'
struct alignas(16) long_int_int { long long a; int b, c; };
struct alignas(16) pointer_int { float *a; int b; };
struct alignas(16) double_float_float { double a; float b, c; };
struct alignas(16) float_float_float { float a, b, c; };
struct alignas(8) short_short_float { short a, b; float c; };
struct alignas(8) float_char { float a; char b; };
struct alignas(8) float_int { float a; int b; };
struct alignas(4) char_char_short { char a, b; short c; };

#define COPY(STRUCT) extern "C" __global__ void copy_##STRUCT(STRUCT *output, const STRUCT *source) \
  { output[threadIdx.x] = source[threadIdx.x]; }
COPY(long_int_int)
COPY(pointer_int)
COPY(double_float_float)
COPY(float_float_float)
COPY(short_short_float)
COPY(float_char)
COPY(float_int)
COPY(char_char_short)
CUDA

structs=$(sed -n 's/^struct.* \(.*\) {.*/\1/p' "$work/kernels.cu")
for arch in sm_90 sm_100 sm_120; do
  nvcc -cubin -arch=$arch "$work/kernels.cu" -o "$work/kernels.cubin"
  for struct in $structs; do
    nvdisasm -c "$work/kernels.cubin" | sed -n "/^\.text\.copy_$struct:/,/EXIT/p" |
      grep -oE '(LDG|STG)[.A-Z0-9]*' | sort | uniq -c |
      awk -v name="$arch $struct:" '{ name = name " " $1 " " $2 } END { print name }'
  done
done | tee "$work/seen"

expected='sm_90 long_int_int: 1 LDG.E.128 1 STG.E.128
sm_90 pointer_int: 1 LDG.E.128 1 STG.E.128
sm_90 double_float_float: 1 LDG.E.128 1 STG.E.128
sm_90 float_float_float: 1 LDG.E.128 1 STG.E.128
sm_90 short_short_float: 1 LDG.E.64 1 STG.E.64
sm_90 float_char: 1 LDG.E.64 1 STG.E.64
sm_90 float_int: 1 LDG.E.64 1 STG.E.64
sm_90 char_char_short: 1 LDG.E 1 STG.E'
for arch in sm_100 sm_120; do
  expected="$expected
$arch long_int_int: 2 LDG.E.64 2 STG.E.64
$arch pointer_int: 2 LDG.E.64 2 STG.E.64
$arch double_float_float: 2 LDG.E.64 2 STG.E.64
$arch float_float_float: 1 LDG.E 1 LDG.E.128 1 STG.E.128
$arch short_short_float: 2 LDG.E 1 STG.E.64
$arch float_char: 2 LDG.E 1 STG.E.64
$arch float_int: 1 LDG.E.64 1 STG.E.64
$arch char_char_short: 2 LDG.E.U16 2 STG.E.U16"
done
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
