#!/usr/bin/env bash
# Guess: `output[i] = source[i]` of a record of four float32 is one access of 16 bytes or four of 4, as of a struct in
# CUDA C++. The record is NumPy's with align=True, so its alignment of 4 bytes is known.
# What happens: 16 loads and 16 stores of single bytes, in PTX and in machine code. The lanes of each lie 16 bytes apart.
# Field by field, the same copy is four accesses of 4 bytes.
# Version: numba-cuda 0.30.4, a target of sm_90, which needs no GPU; ptxas and nvdisasm 13.5.37.
# Why it matters: a warp that loads 512 bytes makes 16 requests of 16 sectors each, 256 in place of 16. The shortest way
# to write a copy is the worst.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An environment: numba-cuda takes the place of numba's own CUDA target by a .pth file, which PYTHONPATH does not read.
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check numba-cuda==0.30.4 numba==0.68.1 \
  nvidia-cuda-nvrtc==13.5.37 nvidia-nvvm==13.5.37 nvidia-nvjitlink==13.5.37 nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin):$PATH"
ptxas --version | grep release

cat >"$work/copy_records.py" <<'PYTHON'
import re
import subprocess
import sys
from importlib.metadata import version

import numpy as np
from numba import cuda, from_dtype, void

def copy(output, source):
    i = cuda.grid(1)
    output[i] = source[i]

def copy_fields(output, source):
    i = cuda.grid(1)
    output[i].x = source[i].x
    output[i].y = source[i].y
    output[i].z = source[i].z
    output[i].w = source[i].w

def describe_accesses(kernel):
    """Compile for records of four floats; return the accesses to global memory in PTX and in machine code."""
    record = from_dtype(np.dtype([(name, np.float32) for name in "xyzw"], align=True))
    ptx, _ = cuda.compile_ptx(kernel, void(record[::1], record[::1]), cc=(9, 0))
    source, cubin = sys.argv[1] + "/kernel.ptx", sys.argv[1] + "/kernel.cubin"
    with open(source, "w") as file:
        file.write(ptx)
    subprocess.run(["ptxas", "-arch=sm_90", source, "-o", cubin], check=True)
    code = subprocess.run(["nvdisasm", "-c", cubin], check=True, capture_output=True, text=True).stdout
    accesses = re.findall(r"\b(?:ld|st)\.global[.a-z0-9]+", ptx) + re.findall(r"\b(?:LDG|STG)[.A-Z0-9]*", code)
    return ", ".join(f"{accesses.count(name)} {name}" for name in dict.fromkeys(accesses))

print("numba-cuda", version("numba-cuda"))
print("record:", describe_accesses(copy))
print("fields:", describe_accesses(copy_fields))
PYTHON
"$work/venv/bin/python" -W ignore "$work/copy_records.py" "$work" | tee "$work/seen"

expected='numba-cuda 0.30.4
record: 16 ld.global.u8, 16 st.global.u8, 16 LDG.E.U8, 16 STG.E.U8
fields: 4 ld.global.f32, 4 st.global.f32, 4 LDG.E, 4 STG.E'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
