#!/usr/bin/env bash
# Guess: `x + 1` of a contiguous array is read with one access a thread in each type, as of float32: a float4.
# What happens: four accesses of one element each of bfloat16, int8, int16, int64 and float64. Only float32, int32,
# float16 and float8 have vectors. A thread owns four neighbours in all of them: lanes are four elements apart.
# Version: tinygrad 0.14.0, its CUDA renderer for sm_90, which needs no GPU. Seen on 30 November 2026.
# Why it matters: four times the requests, and each asks for all sectors of the warp's elements: 8 for 64 bytes of
# bfloat16, and 32 for 256 bytes of float64. A change from float16 to bfloat16 changes the accesses, not the bytes.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" tinygrad==0.14.0 nvidia-cuda-nvrtc==13.5.37
NVRTC_PATH=$(find "$work/packages" -name 'libnvrtc.so.*')
export PYTHONPATH="$work/packages" XDG_CACHE_HOME="$work/cache" DEV=NULL:CUDA:sm_90 DEBUG=4 NVRTC_PATH

cat >"$work/add_one.py" <<'PYTHON'
import sys

from tinygrad import Tensor, dtypes

(Tensor.empty(4096, 4096, dtype=getattr(dtypes, sys.argv[1])) + 1).realize()
PYTHON

for type in float32 int32 float16 fp8e4m3 bfloat16 int8 int16 int64 float64; do
  python3 "$work/add_one.py" "$type" >"$work/code" 2>&1 || { cat "$work/code" >&2; exit 1; }
  # A thread's first element, and the types by which data1, the source, is read.
  first=$(grep -oE 'alu0 = .*<<[0-9]+\)\)' "$work/code")
  loads=$(grep -E ' val[0-9]+ = .*data1_' "$work/code" | sed -E 's/ val.*//; s/^ +//' | sort | uniq -c)
  # shellcheck disable=SC2086 # without the spaces of uniq
  echo "$type, $first:" $loads
done | tee "$work/seen"

expected='float32, alu0 = ((gidx0<<7)+(lidx0<<2)): 1 float4
int32, alu0 = ((gidx0<<7)+(lidx0<<2)): 1 int4
float16, alu0 = ((gidx0<<7)+(lidx0<<2)): 1 half4
fp8e4m3, alu0 = ((gidx0<<7)+(lidx0<<2)): 1 __nv_fp8_e4m34
bfloat16, alu0 = ((gidx0<<7)+(lidx0<<2)): 4 nv_bfloat16
int8, alu0 = ((gidx0<<7)+(lidx0<<2)): 4 signed char
int16, alu0 = ((gidx0<<7)+(lidx0<<2)): 4 short
int64, alu0 = ((gidx0<<7)+(lidx0<<2)): 4 long
float64, alu0 = ((gidx0<<7)+(lidx0<<2)): 4 double'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
