#!/usr/bin/env bash
# Guess: an iterator of cuda.compute over an array of the type of records[["x", "z"]], which is a
# view of two fields of four, finds each field where NumPy has it: z at byte 8 of 16.
# What happens: it takes the fields' names and types alone and packs them: z at byte 4 of 8. So
# neither the field nor any element but the first is read from its place, without a word. Of the
# whole record's type all is right.
# Version: cuda.compute of cuda-cccl 1.2.1, built for sm_90 ahead of time, which needs no GPU;
# nvdisasm 13.5.37.
# Why it matters: half of the bytes of the array are never read, so the counters show half of the
# sectors that a sum of z needs, and a wrong sum.
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
from importlib.metadata import version

import numpy as np
from cuda.compute import OpKind, ProxyArray, TransformIterator, make_reduce_into

THREADS = 256  # of a block, which read neighbouring elements

class Array:
    """A contiguous array whose address is a multiple of 256; nothing reads it."""

    def __init__(self, dtype):
        self.dtype, self.shape = dtype, (1024,)
        description = {"typestr": dtype.str, "data": (1 << 32, False), "strides": None}
        self.__cuda_array_interface__ = {"shape": self.shape, "version": 3, **description}

def get_z(record):
    return record.z

def describe_places(dtype):
    """Build a sum of z for sm_90; return where it reads z, by the offsets of its loads."""
    source, zero = TransformIterator(Array(dtype), get_z), np.zeros(1, np.float32)
    output = ProxyArray(np.float32)
    sums = make_reduce_into(d_in=source, d_out=output, op=OpKind.PLUS, h_init=zero, compute_capability=90)
    with open(sys.argv[1], "wb") as file:
        file.write(sums.build_results[90]._get_cubin())
    code = subprocess.run(["nvdisasm", "-c", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    (kernel,) = (text for text in re.split(r"\n(?=\.text\.)", code) if "DeviceReduceKernel" in text[:200])
    offsets = {int(offset, 16) for offset in re.findall(r"LDG\S* .*\.64\+(0x[0-9a-f]+)\]", kernel)}
    *_, last_but_one, last = sorted(offset for offset in offsets if offset % 4 == 0)
    return f"z at byte {last % (last - last_but_one)} of {(last - last_but_one) // THREADS}"

records = np.zeros(1024, [(name, np.float32) for name in "xyzw"])
print("cuda-cccl", version("cuda-cccl"))
for label, array in (("records", records), ("fields", records[["x", "z"]])):
    _, offset = array.dtype.fields["z"]
    print(f"{label}: NumPy has z at byte {offset} of {array.itemsize}, the kernel reads", describe_places(array.dtype))
PYTHON
"$work/venv/bin/python" -W ignore "$work/sums.py" "$work/sums.cubin" | tee "$work/seen"

expected='cuda-cccl 1.2.1
records: NumPy has z at byte 8 of 16, the kernel reads z at byte 8 of 16
fields: NumPy has z at byte 8 of 16, the kernel reads z at byte 4 of 8'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
