#!/usr/bin/env bash
# Guess: with_flops of torch.profiler counts one operation for each element of a sum or product, and 2 M N K for a product
# of matrices.
# What happens: of a sum or product the elements of the first operand are counted, whatever the result's shape:
# `vector * matrix` is 512 operations, `matrix * vector` 131072. A sparse matrix counts as dense, in COO twice and in CSR
# three times, as operations that call each other add up: 512 and 768 times what is computed here. `matrix @ vector` and
# subtractions have none, and the product in place is not counted where the one out of place is.
# Version: torch 2.13.0, on a CPU: the number is computed from the operands' shapes, alike for each device. Seen on
# 1 December 2026.
# Why it matters: FLOP/s and operations a byte of broadcast products, such as weights of a norm or a mask, are wrong by the
# size of the matrix, and change when the operands are exchanged.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check torch==2.13.0 numpy==2.4.6

cat >"$work/count.py" <<'PYTHON'
import warnings

import torch
from torch.profiler import ProfilerActivity, profile

warnings.simplefilter("ignore")
matrix, vector, other = torch.ones(256, 512), torch.ones(512), torch.ones(256)
coo, csr = torch.eye(256).to_sparse(), torch.eye(256).to_sparse_csr()
elements = 256 * 512
print("torch", torch.__version__.split("+")[0])
for label, right, compute in (
    ("matrix * matrix", elements, lambda: matrix * matrix),
    ("matrix * vector", elements, lambda: matrix * vector),
    ("vector * matrix", elements, lambda: vector * matrix),
    ("vector + matrix", elements, lambda: vector + matrix),
    ("outer(other, vector)", elements, lambda: torch.outer(other, vector)),
    ("matrix - vector", elements, lambda: matrix - vector),
    ("matrix *= vector", elements, lambda: matrix.mul_(vector)),
    ("matrix @ column", 2 * elements, lambda: matrix @ vector[:, None]),
    ("matrix @ vector", 2 * elements, lambda: matrix @ vector),
    ("COO @ matrix", 2 * elements, lambda: coo @ matrix),
    ("CSR @ matrix", 2 * elements, lambda: csr @ matrix),
):
    with profile(activities=[ProfilerActivity.CPU], with_flops=True, record_shapes=True) as profiler:
        compute()
    print(f"{label}: {sum(event.flops for event in profiler.key_averages())}, right {right}")
PYTHON
"$work/venv/bin/python" "$work/count.py" 2>/dev/null | tee "$work/seen"

expected='torch 2.13.0
matrix * matrix: 131072, right 131072
matrix * vector: 131072, right 131072
vector * matrix: 512, right 131072
vector + matrix: 512, right 131072
outer(other, vector): 256, right 131072
matrix - vector: 0, right 131072
matrix *= vector: 0, right 131072
matrix @ column: 262144, right 262144
matrix @ vector: 0, right 262144
COO @ matrix: 134217728, right 262144
CSR @ matrix: 201326592, right 262144'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
