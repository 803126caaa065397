#!/usr/bin/env bash
# Guess: cuda.compute sums an array of records of four float32 with the same loads, whether or not
# its NumPy type was made with align=True: the offsets are the same.
# What happens: without, each record is 16 loads of a byte; with, four of 4 bytes. Which of the two
# types a process meets first decides for both, since NumPy's types compare as equal, and the
# library keeps the first one's alignment.
# Version: cuda.compute of cuda-cccl 1.2.1, built for sm_90 ahead of time, which needs no GPU;
# nvdisasm 13.5.37.
# Why it matters: the loads of a byte lie 16 bytes apart: four times the requests, and 256 sectors a
# warp in place of 64. Two runs of one benchmark differ if other records came first.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check cuda-cccl[cu13]==1.2.1 numpy==2.4.6 \
  numba-cuda-mlir==0.5.4 cuda-toolkit==13.5.0 cuda-bindings==13.5.0 cuda-core==1.2.2 nvidia-cuda-nvdisasm==13.5.37
packages=$(echo "$work"/venv/lib/python3*/site-packages)
# The library is linked to the driver's, though it does not call it here: an empty one takes its place.
nm -D "$packages/cuda/compute/cu13/cccl/libcccl.c.parallel.so" |
  awk '$1 == "U" && $2 ~ /^cu[A-Z]/ { print "int " $2 "(void) { return 100; }" }' |
  cc -shared -fPIC -x c - -o "$work/libcuda.so.1"
export LD_LIBRARY_PATH="$work" PATH="$packages/nvidia/cu13/bin:$PATH"

cat >"$work/sums.py" <<'PYTHON'
import re
import subprocess
import sys

import numpy as np
from cuda.compute import ProxyArray, gpu_struct, make_reduce_into

def describe_loads(dtype):
    """Build a sum for sm_90; return the loads from global memory in the kernel that reads the array."""
    record = gpu_struct(dtype, "Record")

    def add(left, right):
        return record(left.x + right.x, left.y + right.y, left.z + right.z, left.w + right.w)

    array = ProxyArray(dtype)
    sums = make_reduce_into(d_in=array, d_out=array, op=add, h_init=record(0, 0, 0, 0), compute_capability=90)
    with open(sys.argv[1], "wb") as file:
        file.write(sums.build_results[90]._get_cubin())
    code = subprocess.run(["nvdisasm", "-c", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    (kernel,) = (text for text in re.split(r"\n(?=\.text\.)", code) if "DeviceReduceKernel" in text[:200])
    loads = re.findall(r"\bLDG?\b[.A-Z0-9]*", kernel)
    return ", ".join(f"{loads.count(name)} {name}" for name in sorted(set(loads)))

for order, name in enumerate(sys.argv[2:]):
    dtype = np.dtype([(field, np.float32) for field in "xyzw"], align=name == "aligned")
    print("then" if order else "first", f"{name}:", describe_loads(dtype))
PYTHON
{
  "$work/venv/bin/python" -m pip list --disable-pip-version-check | awk '$1 == "cuda-cccl" { print $1, $2 }'
  "$work/venv/bin/python" -W ignore "$work/sums.py" "$work/sums.cubin" aligned packed
  "$work/venv/bin/python" -W ignore "$work/sums.py" "$work/sums.cubin" packed aligned
} | tee "$work/seen"

expected='cuda-cccl 1.2.1
first aligned: 44 LDG.E.CONSTANT
then packed: 44 LDG.E.CONSTANT
first packed: 176 LDG.E.U8.CONSTANT
then aligned: 176 LDG.E.U8.CONSTANT'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
