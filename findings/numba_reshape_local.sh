#!/usr/bin/env bash
# Guess: `source.reshape(64, 16)[i, 0]` in a Numba kernel costs what the slice source[1:] costs: arithmetic of an
# address.
# What happens: each thread writes shapes and strides to local memory. It calls a function that finds the new strides,
# and reads them back. Then it reads the element by a generic load. A slice or a transposed array has no local memory.
# Version: numba-cuda 0.30.4, a target of sm_90, which needs no GPU; ptxas and nvdisasm 13.5.37.
# Why it matters: a kernel of one load has 9 stores to local memory, in its own code alone. Counters of local memory
# look like spills, of which ptxas reports none.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An environment: numba-cuda takes the place of numba's own CUDA target by a .pth file, which PYTHONPATH does not read.
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check numba-cuda==0.30.4 numba==0.68.1 \
  nvidia-cuda-nvrtc==13.5.37 nvidia-nvvm==13.5.37 nvidia-nvjitlink==13.5.37 nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin):$PATH"
ptxas --version | grep release

cat >"$work/read_views.py" <<'PYTHON'
import re
import subprocess
import sys
from importlib.metadata import version

from numba import cuda, float32, void

def read_element(output, source):
    i = cuda.grid(1)
    output[i] = source[16 * i]

def read_slice(output, source):
    i = cuda.grid(1)
    output[i] = source[1:][16 * i]

def read_reshaped(output, source):
    i = cuda.grid(1)
    output[i] = source.reshape(64, 16)[i, 0]

def read_transposed(output, source):
    i = cuda.grid(1)
    output[i] = source.T[i, 0]

def describe_accesses(kernel, source):
    """Compile to code that is not linked; return its loads, stores and calls, and the bytes that ptxas spilled."""
    ptx, _ = cuda.compile_ptx(kernel, void(float32[::1], source), cc=(9, 0))
    path, cubin = sys.argv[1] + "/kernel.ptx", sys.argv[1] + "/kernel.cubin"
    with open(path, "w") as file:
        file.write(ptx)
    command = ["ptxas", "-c", "-v", "-arch=sm_90", path, "-o", cubin]
    messages = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    code = subprocess.run(["nvdisasm", "-c", cubin], check=True, capture_output=True, text=True).stdout
    names = re.findall(r"\b(LDL|STL|LDG|LD|CALL)\b", code)
    counts = ", ".join(f"{names.count(name)} {name}" for name in ("STL", "CALL", "LDL", "LDG", "LD"))
    return f"{counts}, {re.search(r'([0-9]+) bytes spill stores', messages)[1]} bytes spilled"

print("numba-cuda", version("numba-cuda"))
print("element:", describe_accesses(read_element, float32[::1]))
print("slice:", describe_accesses(read_slice, float32[::1]))
print("transposed:", describe_accesses(read_transposed, float32[:, ::1]))
print("reshaped:", describe_accesses(read_reshaped, float32[::1]))
PYTHON
"$work/venv/bin/python" -W ignore "$work/read_views.py" "$work" | tee "$work/seen"

expected='numba-cuda 0.30.4
element: 0 STL, 0 CALL, 0 LDL, 1 LDG, 0 LD, 0 bytes spilled
slice: 0 STL, 0 CALL, 0 LDL, 1 LDG, 0 LD, 0 bytes spilled
transposed: 0 STL, 0 CALL, 0 LDL, 1 LDG, 0 LD, 0 bytes spilled
reshaped: 9 STL, 2 CALL, 2 LDL, 0 LDG, 2 LD, 0 bytes spilled'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
