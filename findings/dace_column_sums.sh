#!/usr/bin/env bash
# Guess: `np.sum(a, axis=0)` of a row-major matrix in a DaCe program reads neighbours in a warp, and adds what the warp
# has read before it stores.
# What happens: threadIdx.x runs over the summed axis, whichever it is. For axis=0 the lanes lie a row apart: a load
# touches 32 sectors for 128 bytes. And each element is one atomic addition to its sum, all lanes of a warp to the same
# one, for axis=1 and for the sum of all elements, too. `auto_optimize` makes kernels that coalesce.
# Version: DaCe 1.0.2, networkx 3.4.2; its CUDA code after apply_gpu_transformations(), which needs no GPU.
# Why it matters: 8 times the sectors, and 32 additions to one address a warp, for a sum over the first axis. The
# pre-release 2.0.0b1 makes the same accesses.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check dace==1.0.2 networkx==3.4.2 numpy==1.26.4
export HOME="$work"
cd "$work"

cat >"$work/sums.py" <<'PYTHON'
import re

import dace
import numpy as np

M, N = dace.symbol("M"), dace.symbol("N")

@dace.program
def sum_columns(source: dace.float32[M, N], output: dace.float32[N]):
    output[:] = np.sum(source, axis=0)

@dace.program
def sum_rows(source: dace.float32[M, N], output: dace.float32[M]):
    output[:] = np.sum(source, axis=1)

@dace.program
def add_one(source: dace.float32[M, N], output: dace.float32[M, N]):
    output[:] = source + 1

def describe_kernel(program):
    """Return the index of threadIdx.x, the load and the store of the kernel that reads the matrix."""
    sdfg = program.to_sdfg()
    sdfg.apply_gpu_transformations()
    (code,) = (part.clean_code for part in sdfg.generate_code() if part.language == "cu")
    kernels = re.findall(r"__global__.*?\n}", code, re.DOTALL)
    (kernel,) = (body for body in kernels if re.search(r"= (_in|gpu_source)\[", body))
    lane = re.search(r"int (\w+) = \(blockIdx.x \* 32 \+ threadIdx.x\);", kernel)[1]
    load, store = re.search(r"= (\w+\[.*\]);", kernel)[1], re.search(r"reduce_atomic\(.*\)|gpu_output\[.*\]", kernel)[0]
    return f"lanes differ in {lane}, load {load}, {store}"

print("dace", dace.__version__)
for program in add_one, sum_rows, sum_columns:
    print(f"{program.name}: {describe_kernel(program)}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/sums.py" | tee "$work/seen"

expected='dace 1.0.2
add_one: lanes differ in __i1, load gpu_source[((N * __i0) + __i1)], gpu_output[((N * __i0) + __i1)]
sum_rows: lanes differ in _i0, load _in[((N * _o0) + _i0)], reduce_atomic(_out + _o0, __out)
sum_columns: lanes differ in _i0, load _in[((N * _i0) + _o0)], reduce_atomic(_out + _o0, __out)'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
