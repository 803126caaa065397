#!/usr/bin/env bash
# Guess: `table[tokens]` reads the rows of the tokens and stores them, however many rows the table has. So does
# nn.Embedding.
# What happens: below 32,768 rows it does. From there on the table is split into parts: one kernel stores a copy of the
# result for each part, zeros but for one, and another adds them up. Of 50,257 rows there are 29 parts, of 128,256 rows,
# as in Llama 3, 128. The sum of a one-hot product is split as any long sum, and only then made a read by index.
# Version: tinygrad 0.14.0, its CUDA renderer for sm_90, which needs no GPU. Seen on 30 November 2026.
# Why it matters: 64 rows of 512 float32 are 128 KiB. Beside reading and storing them, 128 parts write 16 MiB and read
# them back. A benchmark with a small vocabulary does not show it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" tinygrad==0.14.0 nvidia-cuda-nvrtc==13.5.37
NVRTC_PATH=$(find "$work/packages" -name 'libnvrtc.so.*')
export PYTHONPATH="$work/packages" XDG_CACHE_HOME="$work/cache" DEV=NULL:CUDA:sm_90 DEBUG=4 NVRTC_PATH

cat >"$work/look_up.py" <<'PYTHON'
import sys

from tinygrad import Tensor, dtypes, nn

way, rows = sys.argv[1], int(sys.argv[2])
tokens = Tensor.empty(64, dtype=dtypes.int)
if way == "table[tokens]":
    Tensor.empty(rows, 512)[tokens].realize()
else:
    embedding = nn.Embedding(rows, 512)
    embedding.weight = Tensor.empty(rows, 512)
    embedding(tokens.reshape(1, 64)).realize()
PYTHON

for way in 'table[tokens]' nn.Embedding; do
  for rows in 32767 32768 50257 128256; do
    python3 "$work/look_up.py" "$way" $rows >"$work/code" 2>&1 || { cat "$work/code" >&2; exit 1; }
    # A kernel's first argument is what it stores; its name has the number of elements.
    stored=$(grep -oE '\(float\* data0_[0-9]+' "$work/code" | sed 's/.*_//' | sort -n | uniq)
    # shellcheck disable=SC2086 # one line
    echo "$way, $rows rows: kernels store" $stored floats
  done
done | tee "$work/seen"

expected='table[tokens], 32767 rows: kernels store 32768 floats
table[tokens], 32768 rows: kernels store 32768 4194304 floats
table[tokens], 50257 rows: kernels store 32768 950272 floats
table[tokens], 128256 rows: kernels store 32768 4194304 floats
nn.Embedding, 32767 rows: kernels store 32768 floats
nn.Embedding, 32768 rows: kernels store 32768 4194304 floats
nn.Embedding, 50257 rows: kernels store 32768 950272 floats
nn.Embedding, 128256 rows: kernels store 32768 4194304 floats'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
