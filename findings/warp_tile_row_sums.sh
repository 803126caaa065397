#!/usr/bin/env bash
# Guess: wp.tile_reduce(wp.add, tile, axis=1) sums the rows of a 32 x 32 tile without bank conflicts, as axis=0 sums its
# columns. The documentation names no difference between the axes.
# What happens: up to 32 columns one thread sums a row alone, with 16 bytes a load where rows allow it. Lanes lie a row
# apart, 128 bytes, and all in the same four banks: 32 passes a load instead of 4. Rows of 16 floats take 16. From 33
# columns on a warp sums a row, and its lanes read neighbours.
# Version: Warp (warp-lang) 1.19.0, a target of sm_90, which needs no GPU. Seen on 1 December 2026.
# Why it matters: 32 columns, the most usual tile, are the worst width: 31 or 33 have no conflicts. A softmax or a norm
# of rows has them, and sums of columns do not. Sectors are the same; wavefronts of shared memory show it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" warp-lang==1.19.0 numpy==2.4.6
export PYTHONPATH="$work/packages"

cat >"$work/sums.py" <<'PYTHON'
import re
import sys
from collections import Counter
from pathlib import Path

import warp as wp

wp.config.quiet = True
wp.config.enable_backward = False
wp.config.kernel_cache_dir = sys.argv[1] + "/cache"
CASES = [(0, 32, 32), (1, 32, 32), (1, 32, 16), (1, 64, 31), (1, 32, 33), (1, 32, 64)]
OPERATIONS = {"mov": int, "cvt": int, "add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "and": int.__and__}
OPERATIONS |= {"shl": int.__lshift__, "shr": int.__rshift__, "mad": lambda a, b, c: a * b + c, "or": int.__or__}

def make_kernel(axis, rows, columns):
    def sum_tile(output: wp.array(dtype=wp.float32), source: wp.array2d(dtype=wp.float32)):
        i, j = wp.tid()
        tile = wp.tile_load(source, shape=(rows, columns), offset=(i * rows, 0))
        sums = wp.tile_reduce(wp.add, tile, axis=axis)
        wp.tile_store(output, sums, offset=i * (columns if axis == 0 else rows))

    return wp.Kernel(func=sum_tile, key=f"sum_{axis}_{rows}_{columns}")

def find_address(ptx, lane):
    """Compute the address, less that of the tile, of the first element that a thread loads from shared memory."""
    register = re.search(r"ld\.shared\.(?:v4\.)?[fb]32 .*\[(%r\d+)", ptx)[1]
    values = {"%tid.x": lane, "%ntid.x": 256, "%ctaid.x": 0}
    for name, text in re.findall(r"^\t(\w+)\.[a-z.]*[bsu]\d+\s+(.*);", ptx, re.MULTILINE):
        target, *operands = re.findall(r"[%\w.-]+", text)
        if name in OPERATIONS:
            numbers = (int(x) if x.lstrip("-").isdigit() else values.get(x, 0) for x in operands)
            values[target] = OPERATIONS[name](*numbers)
        if target == register:
            return values[target]

kernels = [make_kernel(*case) for case in CASES]
wp.compile_aot_module(kernels[0].module, arch=90, module_dir=sys.argv[1] + "/ptx", use_ptx=True)
(ptx,) = (path.read_text() for path in Path(sys.argv[1], "ptx").glob("*.ptx"))
print("warp", wp.__version__)
for kernel, (axis, rows, columns) in zip(kernels, CASES):
    body = re.search(rf"\.entry {kernel.key}_\w+\(.*?\n}}", ptx, re.DOTALL)[0]
    addresses = [find_address(body, lane) for lane in range(32)]
    width = 4 if "ld.shared.v4" in body else 1
    words = {address // 4 + i for address in addresses for i in range(width)}
    passes = max(Counter(word % 32 for word in words).values())
    apart = addresses[1] - addresses[0]
    print(f"axis {axis} of {rows} x {columns}: lanes {apart} bytes apart, {4 * width} bytes each, {passes} passes")
PYTHON
python3 "$work/sums.py" "$work" | sed -n "/^warp 1/,\$p" | tee "$work/seen"

expected='warp 1.19.0
axis 0 of 32 x 32: lanes 4 bytes apart, 4 bytes each, 1 passes
axis 1 of 32 x 32: lanes 128 bytes apart, 16 bytes each, 32 passes
axis 1 of 32 x 16: lanes 64 bytes apart, 16 bytes each, 16 passes
axis 1 of 64 x 31: lanes 124 bytes apart, 4 bytes each, 1 passes
axis 1 of 32 x 33: lanes 4 bytes apart, 4 bytes each, 1 passes
axis 1 of 32 x 64: lanes 4 bytes apart, 4 bytes each, 1 passes'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
