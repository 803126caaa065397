#!/usr/bin/env bash
# Guess: a kernel reads an element of wp.array(dtype=wp.vec4) with one access of 16 bytes, as CUDA C++ reads a float4.
# What happens: four accesses of 4 bytes, one a component, and four for a store. The lanes of each lie 16 bytes apart: a
# request touches 16 sectors for the bytes of 4. vec2 is two accesses, a quaternion four, a 4 x 4 matrix 16.
# Version: Warp (warp-lang) 1.19.0, a target of sm_90, which needs no GPU.
# Why it matters: a contiguous array of wp.vec4 counts four times the sectors that it needs, and a matrix 8 times, though
# no index of the kernel is strided. A thread for each component coalesces.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" warp-lang==1.19.0
export PYTHONPATH="$work/packages"

cat >"$work/copy_kernels.py" <<'PYTHON'
import re
import sys
from pathlib import Path

import warp as wp

wp.config.quiet = True
wp.config.enable_backward = False
wp.config.kernel_cache_dir = sys.argv[1] + "/cache"
DTYPES = {"float": float, "vec2": wp.vec2, "vec4": wp.vec4, "quat": wp.quat, "mat44": wp.mat44}

def make_copy(name, dtype):
    def copy(output: wp.array(dtype=dtype), source: wp.array(dtype=dtype)):
        i = wp.tid()
        output[i] = source[i]

    return wp.Kernel(func=copy, key=name)

kernels = [make_copy(name, dtype) for name, dtype in DTYPES.items()]
wp.compile_aot_module(kernels[0].module, arch=90, module_dir=sys.argv[1] + "/ptx", use_ptx=True)
(ptx,) = (path.read_text() for path in Path(sys.argv[1], "ptx").glob("*.ptx"))
print("warp", wp.__version__)
for name in DTYPES:
    body = re.search(rf"\.entry {name}_\w+\((.*?)\n}}", ptx, re.DOTALL)[1]
    # A copy stands there twice: for launches of few threads and for large ones.
    loads, stores = (len(re.findall(rf"\b{access}\.global\S+", body)) // 2 for access in ("ld", "st"))
    print(f"{name}: {loads} loads, {stores} stores,", *sorted(set(re.findall(r"\b(?:ld|st)\.global\S+", body))))
PYTHON
python3 "$work/copy_kernels.py" "$work" | sed -n "/^warp 1/,\$p" | tee "$work/seen"

expected='warp 1.19.0
float: 1 loads, 1 stores, ld.global.f32 st.global.f32
vec2: 2 loads, 2 stores, ld.global.f32 st.global.f32
vec4: 4 loads, 4 stores, ld.global.f32 st.global.f32
quat: 4 loads, 4 stores, ld.global.f32 st.global.f32
mat44: 16 loads, 16 stores, ld.global.f32 st.global.f32'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
