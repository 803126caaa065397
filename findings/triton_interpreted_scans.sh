#!/usr/bin/env bash
# Guess: TRITON_INTERPRET=1 executes a kernel on the CPU with the results that the compiled kernel has, or refuses it.
# What happens: tl.associative_scan() along axis -1 scans nothing: of one tensor the input comes back, and of a product,
# as the second of two tensors, zeros after the first column. Nothing is raised. Compiled, -1 is the last axis, as it is
# for tl.cumsum() in both. tl.reduce() along -1 does raise an error.
# Version: Triton 3.9.0, executed on the CPU, and compiled for sm_90, which needs no GPU. Seen on 30 November 2026.
# Why it matters: tests on machines without a GPU run this way. A right kernel fails there, and one whose scan is of the
# wrong axis may pass. Helion keeps the -1 of torch.cumsum(x, -1) in the code that it makes.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
# PyTorch keeps the tensors: a build for the CPU is enough.
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check triton==3.9.0 torch==2.13.0 numpy==2.4.6
export TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/scans.py" <<'PYTHON'
import os
import re

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def add(a, b):
    return a + b

@triton.jit
def add_and_multiply(a, b, c, d):
    return a + c, b * d

@triton.jit
def scan(output, source, axis: tl.constexpr):
    i = 4 * tl.arange(0, 2)[:, None] + tl.arange(0, 4)[None, :]
    tl.store(output + i, tl.associative_scan(tl.load(source + i), axis, add))

@triton.jit
def scan_two(output, source, axis: tl.constexpr):
    i = 4 * tl.arange(0, 2)[:, None] + tl.arange(0, 4)[None, :]
    x = tl.load(source + i)
    tl.store(output + i, tl.associative_scan((x, x), axis, add_and_multiply)[1])

@triton.jit
def cumsum(output, source, axis: tl.constexpr):
    i = 4 * tl.arange(0, 2)[:, None] + tl.arange(0, 4)[None, :]
    tl.store(output + i, tl.cumsum(tl.load(source + i), axis))

for kernel in scan, scan_two, cumsum:
    for axis in 1, -1:
        if "TRITON_INTERPRET" in os.environ:
            output, source = torch.zeros(2, 4, dtype=torch.int32), torch.arange(2, 10, dtype=torch.int32)
            kernel[(1,)](output, source, axis)
            print(f"{kernel.__name__} along {axis}: {output.tolist()}")
        else:
            kernel_source = ASTSource(kernel, {"output": "*i32", "source": "*i32", "axis": "constexpr"}, {(2,): axis})
            code = triton.compile(kernel_source, target=GPUTarget("cuda", 90, 32)).asm["ttir"]
            print(f"{kernel.__name__} along {axis}, compiled:", *re.findall(r"tt\.scan.*?(axis = -?\d+)", code))
PYTHON
{
  "$work/venv/bin/python" -c 'import triton; print("triton", triton.__version__)'
  "$work/venv/bin/python" -W ignore "$work/scans.py"
  TRITON_INTERPRET=1 "$work/venv/bin/python" -W ignore "$work/scans.py"
} | tee "$work/seen"

expected='triton 3.9.0
scan along 1, compiled: axis = 1
scan along -1, compiled: axis = 1
scan_two along 1, compiled: axis = 1
scan_two along -1, compiled: axis = 1
cumsum along 1, compiled: axis = 1
cumsum along -1, compiled: axis = 1
scan along 1: [[2, 5, 9, 14], [6, 13, 21, 30]]
scan along -1: [[2, 3, 4, 5], [6, 7, 8, 9]]
scan_two along 1: [[2, 6, 24, 120], [6, 42, 336, 3024]]
scan_two along -1: [[2, 0, 0, 0], [6, 0, 0, 0]]
cumsum along 1: [[2, 5, 9, 14], [6, 13, 21, 30]]
cumsum along -1: [[2, 5, 9, 14], [6, 13, 21, 30]]'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
