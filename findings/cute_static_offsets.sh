#!/usr/bin/env bash
# Guess: `matrix[row, column]` of a tensor from from_dlpack() is the element of that row, however large the matrix is.
# What happens: from_dlpack() makes a layout of constants, for which the element's number is computed with 32 bits. In a
# matrix of 32,768 floats a row, row 65,536 lies 8 GiB before the array, and row 131,072 is row 0. local_tile() wraps at
# row 131,072. `matrix[row, None][column]` and layouts of mark_layout_dynamic() have 64 bits.
# Version: CuTe DSL, nvidia-cutlass-dsl 4.8.1, sm_90, which needs no GPU. Seen on 30 November 2026.
# Why it matters: 2^31 elements suffice, 4 GiB of float16. From 2^32 on, a kernel reads and writes the first rows again,
# without an error, and counts as many transactions as the right one. The layout is known when compiling.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check nvidia-cutlass-dsl==4.8.1 numpy==2.4.6

cat >"$work/places.py" <<'PYTHON'
import re
import sys
from importlib.metadata import version

import cutlass
import cutlass.cute as cute
import numpy as np
from cutlass.cute.runtime import from_dlpack

ROWS, COLUMNS = 2**18, 2**15

@cute.kernel
def read(matrix: cute.Tensor, output: cute.Tensor, row: cutlass.Int32, way: cutlass.Constexpr):
    thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    if cutlass.const_expr(way == "matrix[row, column]"):
        output[thread] = matrix[row, thread]
    elif cutlass.const_expr(way == "matrix[row, None][column]"):
        output[thread] = matrix[row, None][thread]
    else:
        output[thread] = cute.local_tile(matrix, (1, 128), (block, 0))[0, thread]

@cute.jit
def launch(matrix: cute.Tensor, output: cute.Tensor, row: cutlass.Int32, way: cutlass.Constexpr):
    read(matrix, output, row, way).launch(grid=(ROWS, 1, 1), block=(128, 1, 1))

OPERATIONS = {"add": int.__add__, "or": int.__or__, "mul": int.__mul__, "shl": int.__lshift__}
OPERATIONS["mad"] = lambda a, b, c: a * b + c

def find_row(ptx, row):
    """Compute the row that thread 0 reads, where `row` is the argument and the block's number."""
    values = {"%ctaid.x": row}
    for name, kind, text in re.findall(r"^\t(\w+)\.(\S+)\s+(.*);", ptx, re.MULTILINE):
        target, *operands = re.findall(r"[%\w.+]+", text)
        if name == "ld" and kind.startswith("param"):
            values[target] = row if text.endswith("param_2]") else COLUMNS if text.endswith("param_0+16]") else 0
        elif name == "ld":
            return values[operands[-1]] // (4 * COLUMNS)
        elif name in ("mov", "cvt", "cvta", *OPERATIONS):
            numbers = [int(x) if x.isdigit() else values.get(x, 0) for x in operands]
            if kind == "wide.s32":
                numbers = [x - (x >> 31 << 32) for x in numbers]
            value = OPERATIONS[name](*numbers) if name in OPERATIONS else numbers[0]
            values[target] = value % 2**32 if kind in ("b32", "s32", "u32") else value

print("nvidia-cutlass-dsl", version("nvidia-cutlass-dsl"))
numbers = np.empty(128, np.float32)
for dynamic in False, True:
    whole = np.lib.stride_tricks.as_strided(numbers, (ROWS, COLUMNS), (4 * COLUMNS, 4))  # its memory is never read
    matrix = from_dlpack(whole, assumed_align=16)
    matrix = matrix.mark_layout_dynamic(1) if dynamic else matrix
    for way in "matrix[row, column]", "local_tile", "matrix[row, None][column]":
        options = f"--gpu-arch sm_90 --keep-ptx --dump-dir={sys.argv[1]}"
        ptx = cute.compile(launch, matrix, from_dlpack(numbers), 1, way, options=options).__ptx__
        rows = ", ".join(f"{find_row(ptx, row)} for {row}" for row in (65535, 65536, 131072, 131073))
        print("dynamic" if dynamic else "static", f"{way}: row {rows}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/places.py" "$work" | tee "$work/seen"

expected='nvidia-cutlass-dsl 4.8.1
static matrix[row, column]: row 65535 for 65535, -65536 for 65536, 0 for 131072, 1 for 131073
static local_tile: row 65535 for 65535, 65536 for 65536, 0 for 131072, 1 for 131073
static matrix[row, None][column]: row 65535 for 65535, 65536 for 65536, 131072 for 131072, 131073 for 131073
dynamic matrix[row, column]: row 65535 for 65535, 65536 for 65536, 131072 for 131072, 131073 for 131073
dynamic local_tile: row 65535 for 65535, 65536 for 65536, 131072 for 131072, 131073 for 131073
dynamic matrix[row, None][column]: row 65535 for 65535, 65536 for 65536, 131072 for 131072, 131073 for 131073'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
