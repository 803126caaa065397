#!/usr/bin/env bash
# Guess: a sum over the rows of a row-major matrix lets the lanes of a warp read neighbours of one row.
# What happens: each thread sums four rows alone, 16 bytes a load, and its neighbour sums the next four. The lanes of a
# load lie 64 KiB apart: a request touches 32 sectors and uses half of each. Few rows are split among 16 threads, each
# with a stretch of the row of its own. The sum over columns coalesces.
# Version: tinygrad 0.14.0, its renderer for CUDA on sm_90, without its search (BEAM); NVRTC 13.5.37. It needs no GPU.
# Why it matters: a mean, a softmax or a norm of each row moves twice the sectors, unless L1 keeps the other halves.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" tinygrad==0.14.0 nvidia-cuda-nvrtc==13.5.37
NVRTC_PATH=$(find "$work/packages" -name 'libnvrtc.so.*')
export PYTHONPATH="$work/packages" XDG_CACHE_HOME="$work/cache" DEV=NULL:CUDA:sm_90 DEBUG=4 NVRTC_PATH

cat >"$work/sum_matrix.py" <<'PYTHON'
import sys

from tinygrad import Tensor

rows, columns, axis = map(int, sys.argv[1:])
Tensor.empty(rows, columns).sum(axis).realize()
PYTHON

for case in '4096 4096 1' '256 256 1' '4096 4096 0'; do
    # shellcheck disable=SC2086 # three arguments
    shift=$(python3 "$work/sum_matrix.py" $case 2>&1 | grep -oE 'lidx0<<[0-9]+' | head -n 1)
    echo "rows, columns, axis $case: threads are $((1 << ${shift#lidx0<<})) floats apart"
done | tee "$work/seen"

expected='rows, columns, axis 4096 4096 1: threads are 16384 floats apart
rows, columns, axis 256 256 1: threads are 16 floats apart
rows, columns, axis 4096 4096 0: threads are 4 floats apart'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
