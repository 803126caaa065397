#!/usr/bin/env bash
# Guess: `o[i] = cuda.ldcg(o, i) + 1` in a loop of n turns adds n, as `o[i] = o[i] + 1` does. The documentation calls
# ldcg the load of an element with a cache policy, and ldcv one of data that may change externally.
# What happens: only the first turn adds. The load and the addition leave the loop, and each turn stores the same sum.
# All five hints do so, also if the element is a neighbour's, between barriers. Unrolling splits the loop in two: 4
# turns add 1, and 5 turns add 2.
# Version: numba-cuda 0.30.4, a target of sm_90, which needs no GPU; ptxas and nvdisasm 13.5.37.
# Why it matters: a hint for caches changes the result, without an error. A benchmark of repeated loads loads once, and
# its bandwidth is wrong. The load is inline assembly that the compiler may believe to have no side effects.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An environment: numba-cuda takes the place of numba's own CUDA target by a .pth file, which PYTHONPATH does not read.
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check numba-cuda==0.30.4 numba==0.68.1 \
  nvidia-cuda-nvrtc==13.5.37 nvidia-nvvm==13.5.37 nvidia-nvjitlink==13.5.37 nvidia-cuda-nvcc==13.5.37 \
  nvidia-cuda-nvdisasm==13.5.37
PATH="$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin):$PATH"
ptxas --version | grep release

cat >"$work/count_loads.py" <<'PYTHON'
import re
import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace

import numba.cuda.dispatcher
from numba import cuda, float32, int32, void

# A function that a kernel calls is compiled for the GPU that is there: here for one of sm_90.
numba.cuda.dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))

def plain(array, i):
    return array[i]

def make_own(load):
    def add_turns(o, turns):
        i = cuda.grid(1)
        for _ in range(turns):
            o[i] = load(o, i) + float32(1)

    return add_turns

def make_neighbour(load):
    def exchange(o, turns):
        i = cuda.grid(1)
        for _ in range(turns):
            value = load(o, i ^ 1)
            cuda.syncthreads()
            o[i] = value + float32(1)
            cuda.syncthreads()

    return exchange

def describe_loops(kernel):
    """Return how many loads, additions and stores the machine code has in its loops."""
    path, cubin = sys.argv[1] + "/kernel.ptx", sys.argv[1] + "/kernel.cubin"
    with open(path, "w") as file:
        file.write(cuda.compile_ptx(kernel, void(float32[::1], int32), cc=(9, 0))[0])
    subprocess.run(["ptxas", "-arch=sm_90", path, "-o", cubin], check=True)
    code = subprocess.run(["nvdisasm", "-c", cubin], check=True, capture_output=True, text=True).stdout
    loops = re.findall(r"^(\.L_x_\d+):((?:(?!^\.L).)*?BRA `\(\1\))", code, re.DOTALL | re.MULTILINE)
    names = re.findall(r"\b(LDG|FADD|STG)\b", "".join(body for _, body in loops))
    return ", ".join(f"{names.count(name)} {name}" for name in ("LDG", "FADD", "STG"))

loads = {"plain": cuda.jit(device=True)(plain)}
loads |= {name: getattr(cuda, name) for name in ("ldca", "ldcg", "ldcs", "ldlu", "ldcv")}
print("numba-cuda", version("numba-cuda"))
for name, load in loads.items():
    print(f"{name}: {describe_loops(make_own(load))} in loops; next lane: {describe_loops(make_neighbour(load))}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/count_loads.py" "$work" | tee "$work/seen"

expected="numba-cuda 0.30.4
plain: 0 LDG, 5 FADD, 0 STG in loops; next lane: 5 LDG, 5 FADD, 5 STG
$(printf '%s: 0 LDG, 0 FADD, 2 STG in loops; next lane: 0 LDG, 0 FADD, 5 STG\n' ldca ldcg ldcs ldlu ldcv)"
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
