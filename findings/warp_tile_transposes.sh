#!/usr/bin/env bash
# Guess: a 32 x 32 tile that wp.tile_transpose() transposes is read without bank conflicts: padded or swizzled, as in a
# transpose by hand. The documentation says that it is in shared memory, and that the result aliases it.
# What happens: the result is the same memory with swapped strides. The lanes of a load lie a row apart, 128 bytes, and
# all in one bank: 32 passes instead of 1. Of 16 x 16 floats it takes 8, of 32 x 32 doubles 16 for each half of a warp,
# of 32 x 33 floats 1.
# Version: Warp (warp-lang) 1.19.0, a target of sm_90, which needs no GPU.
# Why it matters: accesses of global memory coalesce, so sectors do not show it. Wavefronts of shared memory do.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" warp-lang==1.19.0 numpy==2.4.6
export PYTHONPATH="$work/packages"

cat >"$work/transposes.py" <<'PYTHON'
import re
import sys
from collections import Counter
from pathlib import Path

import warp as wp

wp.config.quiet = True
wp.config.enable_backward = False
wp.config.kernel_cache_dir = sys.argv[1] + "/cache"
CASES = [("float", wp.float32, 32, 32), ("float", wp.float32, 16, 16)]
CASES += [("double", wp.float64, 32, 32), ("float", wp.float32, 32, 33)]
OPERATIONS = {"mov": int, "cvt": int, "add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "and": int.__and__}
OPERATIONS |= {"shl": int.__lshift__, "shr": int.__rshift__, "mad": lambda a, b, c: a * b + c}

def make_kernel(name, dtype, rows, columns):
    def transpose(output: wp.array2d(dtype=dtype), source: wp.array2d(dtype=dtype)):
        i, j = wp.tid()
        tile = wp.tile_load(source, shape=(rows, columns), offset=(i * rows, j * columns))
        wp.tile_store(output, wp.tile_transpose(tile), offset=(j * columns, i * rows))

    return wp.Kernel(func=transpose, key=f"transpose_{name}_{rows}_{columns}")

def find_address(ptx, lane):
    """Compute the address, less that of the tile, of the first element that a thread loads from the transposed tile."""
    register = re.search(r"ld\.shared\.f\d+ .*\[(%r\d+)\]", ptx)[1]
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
for kernel, (name, dtype, rows, columns) in zip(kernels, CASES):
    body = re.search(rf"\.entry {kernel.key}_\w+\(.*?\n}}", ptx, re.DOTALL)[0]
    size = wp.types.type_size_in_bytes(dtype)
    addresses = [find_address(body, lane) for lane in range(128 // size)]
    passes = max(Counter(address // size % (128 // size) for address in set(addresses)).values())
    print(f"{name} {rows} x {columns}: lanes {addresses[1] - addresses[0]} bytes apart, {passes} passes")
PYTHON
python3 "$work/transposes.py" "$work" | sed -n "/^warp 1/,\$p" | tee "$work/seen"

expected='warp 1.19.0
float 32 x 32: lanes 128 bytes apart, 32 passes
float 16 x 16: lanes 64 bytes apart, 8 passes
double 32 x 32: lanes 256 bytes apart, 16 passes
float 32 x 33: lanes 132 bytes apart, 1 passes'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
