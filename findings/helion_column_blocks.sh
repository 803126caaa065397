#!/usr/bin/env bash
# Guess: without autotuning, Helion's default configuration reads neighbours of memory in a warp, for sums of columns as
# for sums of rows.
# What happens: a program takes one column of 1024 rows or more, for sums and softmaxes. The lanes of a load lie a row
# apart, and each element has a sector of its own. Of 64 rows a program takes 32 columns, and uses whole sectors.
# Version: Helion 1.5.1, Triton 3.9.0, compiled for sm_90, which needs no GPU. Seen on 30 November 2026.
# Why it matters: HELION_AUTOTUNE_EFFORT=none runs this configuration, and autotuning starts from it. Sums of columns
# read 8 times the sectors: a comparison of rows with columns compares coalescing, too.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check helion==1.5.1 torch==2.13.0 \
  triton==3.9.0 numpy==2.4.6 packaging==26.4
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/columns.py" <<'PYTHON'
import importlib
import re
import sys
from importlib.metadata import version
from pathlib import Path

import helion
import helion.language as hl
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@helion.kernel()
def row_sums(matrix):
    output = torch.empty([matrix.size(0)])
    for rows in hl.tile(matrix.size(0)):
        output[rows] = matrix[rows, :].sum(1)
    return output

@helion.kernel()
def column_sums(matrix):
    output = torch.empty([matrix.size(1)])
    for columns in hl.tile(matrix.size(1)):
        output[columns] = matrix[:, columns].sum(0)
    return output

@helion.kernel()
def column_softmax(matrix):
    output = torch.empty_like(matrix)
    for columns in hl.tile(matrix.size(1)):
        output[:, columns] = torch.softmax(matrix[:, columns], 0)
    return output

OPERATIONS = {"mov": int, "cvt": int, "and": int.__and__, "or": int.__or__, "shl": int.__lshift__, "shr": int.__rshift__}
OPERATIONS |= {"add": int.__add__, "mul": int.__mul__, "mad": lambda a, b, c: a * b + c}

def find_address(ptx, lane):
    """Compute the address, less that of the matrix, of the first load of a thread of block 0."""
    values = {"%tid.x": lane}
    for name, kind, text in re.findall(r"^\s*(?:@%p\d+ )?(\w+)\.(\S+)\s+(.*?);", ptx, re.MULTILINE):
        target, *operands = re.findall(r"[%\w.-]+", text)
        if name == "ld" and kind.startswith("global"):
            return values.get(next(operand for operand in operands if operand.startswith("%rd")), 0)
        if name in OPERATIONS:
            numbers = (int(x) if x.lstrip("-").isdigit() else values.get(x, 0) for x in operands)
            values[target] = OPERATIONS[name](*numbers)

def describe_load(bound, config, name):
    """Compile the Triton kernel that Helion makes; describe the first load of the first warp."""
    path = Path(sys.argv[1], f"{name}.py")
    path.write_text(bound.to_triton_code(config))
    sys.path[:0] = [sys.argv[1]] if sys.argv[1] not in sys.path else []
    module = importlib.import_module(name)
    (kernel,) = (value for key, value in vars(module).items() if key.startswith("_helion_"))
    size = int(re.search(r"_RDIM_SIZE_1 = (\d+)", path.read_text())[1])
    signature = {argument: "*fp32" for argument in kernel.arg_names[:2]} | {"_RDIM_SIZE_1": "constexpr"}
    attributes = {(i,): [["tt.divisibility", 16]] for i in range(2)}
    source = ASTSource(kernel, signature, {(2,): size}, attributes)
    target, options = GPUTarget("cuda", 90, 32), {"num_warps": config.num_warps}
    ptx = triton.compile(source, target=target, options=options).asm["ptx"]
    width = 4 * int((re.search(r"ld\.global\S*\.v(\d)", ptx) or "11")[1])
    sectors = {(find_address(ptx, lane) + i) // 32 for lane in range(32) for i in range(0, width, 4)}
    return f"{len(sectors)} sectors for {32 * width} bytes"

print("helion", version("helion"), "triton", version("triton"))
for kernel in row_sums, column_sums, column_softmax:
    for rows in 64, 1024, 4096:
        bound = kernel.bind((torch.empty(rows, 1024),))
        config = bound.config_spec.default_config()
        load = describe_load(bound, config, f"{kernel.name}_{rows}")
        print(f"{kernel.name} of ({rows}, 1024): block_sizes {config.block_sizes}, {load}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/columns.py" "$work" 2>"$work/messages" | tee "$work/seen"

expected='helion 1.5.1 triton 3.9.0
row_sums of (64, 1024): block_sizes [1], 16 sectors for 512 bytes
row_sums of (1024, 1024): block_sizes [1], 16 sectors for 512 bytes
row_sums of (4096, 1024): block_sizes [1], 16 sectors for 512 bytes
column_sums of (64, 1024): block_sizes [32], 16 sectors for 512 bytes
column_sums of (1024, 1024): block_sizes [1], 32 sectors for 128 bytes
column_sums of (4096, 1024): block_sizes [1], 32 sectors for 128 bytes
column_softmax of (64, 1024): block_sizes [32], 16 sectors for 512 bytes
column_softmax of (1024, 1024): block_sizes [1], 32 sectors for 128 bytes
column_softmax of (4096, 1024): block_sizes [1], 32 sectors for 128 bytes'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
