#!/usr/bin/env bash
# Guess: `x + 1` over a contiguous array runs in full warps whose lanes read neighbours, whatever the array's length.
# What happens: the threads of a block are a divisor of the length. With 1,000,003 elements, a prime, the launch has
# 1,000,003 blocks of one thread: 32 requests where one would do. With 4095 x 4095 elements, blocks have 3 threads.
# Version: tinygrad 0.14.0, its renderer for CUDA on sm_90, without its search (BEAM); NVRTC 13.5.37. It needs no GPU.
# Why it matters: the same line coalesces with 2^20 elements, and makes 32 times the requests with one element less.
# Lengths of data sets are seldom multiples of 32.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" tinygrad==0.14.0 nvidia-cuda-nvrtc==13.5.37
NVRTC_PATH=$(find "$work/packages" -name 'libnvrtc.so.*')
export PYTHONPATH="$work/packages" XDG_CACHE_HOME="$work/cache" DEV=NULL:CUDA:sm_90 DEBUG=4 NVRTC_PATH

cat >"$work/add_one.py" <<'PYTHON'
import sys

from tinygrad import Tensor

(Tensor.empty(int(sys.argv[1])) + 1).realize()
PYTHON

for length in 1048576 1048575 16769025 1000000 1000003; do
    python3 "$work/add_one.py" "$length" 2>&1 |
        sed -n "s/.*__launch_bounds__(\([0-9]*\)).*/$length elements: \1 threads a block/p"
done | tee "$work/seen"

expected='1048576 elements: 32 threads a block
1048575 elements: 1 threads a block
16769025 elements: 3 threads a block
1000000 elements: 16 threads a block
1000003 elements: 1 threads a block'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
