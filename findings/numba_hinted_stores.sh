#!/usr/bin/env bash
# Guess: `cuda.stcs(o, i, o[i] + 1)` in a loop of n turns adds n, as `o[i] = o[i] + 1` does.
# What happens: the compiler does not see that the kernel writes o. It reads o by ld.global.nc, the load of memory that
# nobody writes, and ptxas takes that out of the loop: only the first turn adds, as in numba_hinted_loads. stcg, stwb
# and stwt do the same. One plain store of the kernel, to another array, brings the plain load back.
# Version: numba-cuda 0.30.4, a target of sm_90, which needs no GPU; ptxas and nvdisasm 13.5.37.
# Why it matters: a hint for caches changes the result, without an error. Where results are right, a comparison of the
# hints compares other loads, too: LDG.E.CONSTANT instead of LDG.E.
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

cat >"$work/count_stores.py" <<'PYTHON'
import re
import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace

import numba.cuda.dispatcher
from numba import cuda, float32, int32, void

# A function that a kernel calls is compiled for the GPU that is there: here for one of sm_90.
numba.cuda.dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))

def plain(array, i, value):
    array[i] = value

def make_kernel(store):
    def add_turns(o, other, turns):
        i = cuda.grid(1)
        for _ in range(turns):
            store(o, i, o[i] + float32(1))

    return add_turns

def add_beside(o, other, turns):
    i = cuda.grid(1)
    other[i] = float32(turns)
    for _ in range(turns):
        cuda.stcs(o, i, o[i] + float32(1))

def describe_loops(kernel):
    """Return the loads of the PTX code, and how many loads and additions the machine code has in its loops."""
    ptx, _ = cuda.compile_ptx(kernel, void(float32[::1], float32[::1], int32), cc=(9, 0))
    path, cubin = sys.argv[1] + "/kernel.ptx", sys.argv[1] + "/kernel.cubin"
    with open(path, "w") as file:
        file.write(ptx)
    subprocess.run(["ptxas", "-arch=sm_90", path, "-o", cubin], check=True)
    code = subprocess.run(["nvdisasm", "-c", cubin], check=True, capture_output=True, text=True).stdout
    loops = re.findall(r"^(\.L_x_\d+):((?:(?!^\.L).)*?BRA `\(\1\))", code, re.DOTALL | re.MULTILINE)
    names = re.findall(r"\b(LDG|FADD|STG)\b", "".join(body for _, body in loops))
    loads = " ".join(sorted(set(re.findall(r"ld\.global\S+", ptx))))
    return f"{loads}; " + ", ".join(f"{names.count(name)} {name}" for name in ("LDG", "FADD", "STG")) + " in loops"

stores = {"plain": cuda.jit(device=True)(plain)}
stores |= {name: getattr(cuda, name) for name in ("stcg", "stcs", "stwb", "stwt")}
print("numba-cuda", version("numba-cuda"))
for name, store in stores.items():
    print(f"{name}: {describe_loops(make_kernel(store))}")
print(f"stcs beside a plain store: {describe_loops(add_beside)}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/count_stores.py" "$work" | tee "$work/seen"

expected='numba-cuda 0.30.4
plain: ld.global.f32; 0 LDG, 5 FADD, 0 STG in loops
stcg: ld.global.nc.f32; 0 LDG, 0 FADD, 2 STG in loops
stcs: ld.global.nc.f32; 0 LDG, 0 FADD, 2 STG in loops
stwb: ld.global.nc.f32; 0 LDG, 0 FADD, 2 STG in loops
stwt: ld.global.nc.f32; 0 LDG, 0 FADD, 2 STG in loops
stcs beside a plain store: ld.global.f32; 5 LDG, 5 FADD, 5 STG in loops'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
