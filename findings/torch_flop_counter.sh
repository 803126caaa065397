#!/usr/bin/env bash
# Guess: FlopCounterMode counts 2 M N operations for a matrix times a vector, as for the same matrix times a matrix of one
# column, and the operations of a sparse matrix as those of its elements that are there.
# What happens: `matrix @ vector`, torch.mv(), addmv(), dot() and addbmm() count 0; `vector @ matrix`, linear() and the
# matrix of one column count. A sparse matrix is counted as if it were dense: 256 times what is computed here. An LSTM on a
# CPU counts 0.
# Version: torch 2.13.0. Seen on 1 December 2026.
# Why it matters: the total is divided by bytes for a roofline, or by time for FLOP/s. The products of vectors are the ones
# that memory limits, as when one token is decoded. No warning says that a product was left out.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check torch==2.13.0 numpy==2.4.6

cat >"$work/count.py" <<'PYTHON'
import warnings

import torch
from torch.utils.flop_counter import FlopCounterMode

warnings.simplefilter("ignore")
matrix, vector, other = torch.ones(256, 512), torch.ones(512), torch.ones(256)
diagonal = torch.eye(256)
coo, csr = diagonal.to_sparse(), diagonal.to_sparse_csr()
lstm, steps = torch.nn.LSTM(64, 64), torch.ones(10, 1, 64)
print("torch", torch.__version__.split("+")[0])
for label, right, compute in (
    ("matrix @ column", 2 * 256 * 512, lambda: matrix @ vector[:, None]),
    ("matrix @ vector", 2 * 256 * 512, lambda: matrix @ vector),
    ("vector @ matrix", 2 * 256 * 512, lambda: other @ matrix),
    ("linear(vector)", 2 * 256 * 512, lambda: torch.nn.functional.linear(vector, matrix)),
    ("addmv", 2 * 256 * 512, lambda: torch.addmv(other, matrix, vector)),
    ("dot", 2 * 512, lambda: vector @ vector),
    ("bmm", 2 * 4 * 8 * 16 * 32, lambda: torch.bmm(torch.ones(4, 8, 16), torch.ones(4, 16, 32))),
    ("addbmm", 2 * 4 * 8 * 16 * 32, lambda: torch.addbmm(torch.ones(8, 32), torch.ones(4, 8, 16), torch.ones(4, 16, 32))),
    ("CSR @ matrix", 2 * 256 * 512, lambda: csr @ matrix),
    ("COO @ matrix", 2 * 256 * 512, lambda: coo @ matrix),
    ("LSTM of 10 steps", 10 * 2 * 4 * 64 * 128, lambda: lstm(steps)),
):
    with FlopCounterMode(display=False) as counter:
        compute()
    print(f"{label}: {counter.get_total_flops()}, right {right}")
PYTHON
"$work/venv/bin/python" "$work/count.py" 2>/dev/null | tee "$work/seen"

expected='torch 2.13.0
matrix @ column: 262144, right 262144
matrix @ vector: 0, right 262144
vector @ matrix: 262144, right 262144
linear(vector): 262144, right 262144
addmv: 0, right 262144
dot: 0, right 1024
bmm: 32768, right 32768
addbmm: 0, right 32768
CSR @ matrix: 67108864, right 262144
COO @ matrix: 67108864, right 262144
LSTM of 10 steps: 0, right 655360'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
