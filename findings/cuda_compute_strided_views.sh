#!/usr/bin/env bash
# Guess: cuda.compute refuses a view with a step, such as a[::2], for it says "Non-contiguous arrays
# are not supported". Or it reads every other element.
# What happens: it refuses the view alone, and only before it has built the same for a contiguous
# array of the type. After that the view gets that array's kernel. Within an iterator it is never
# refused, and read as neighbours, too.
# Version: cuda.compute of cuda-cccl 1.2.1, built for sm_90 ahead of time, which needs no GPU;
# nvdisasm 13.5.37.
# Why it matters: a benchmark of strided reads through an iterator measures coalesced ones, of the
# first half of the memory: half of the sectors, and a wrong sum. Whether an error says so depends
# on what ran before.
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

class View:
    """A view with a NumPy array's shape and strides at an address that is a multiple of 256; nothing reads it."""

    def __init__(self, array):
        self.dtype, self.shape = array.dtype, array.shape
        description = {"typestr": array.dtype.str, "data": (1 << 32, False), "strides": array.strides}
        self.__cuda_array_interface__ = {"shape": self.shape, "version": 3, **description}

def square(value):
    return value * value

def build_sum(source):
    """Build a sum for sm_90; return the machine code, or what the library objects to."""
    output, zero = ProxyArray(np.float32), np.zeros(1, np.float32)
    try:
        sums = make_reduce_into(d_in=source, d_out=output, op=OpKind.PLUS, h_init=zero, compute_capability=90)
    except ValueError as error:
        return str(error)
    return sums.build_results[90]._get_cubin()

def describe_step(source):
    """Return how far apart the elements lie that neighbouring threads read, by the offsets of a thread's loads."""
    with open(sys.argv[1], "wb") as file:
        file.write(build_sum(source))
    code = subprocess.run(["nvdisasm", "-c", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    (kernel,) = (text for text in re.split(r"\n(?=\.text\.)", code) if "DeviceReduceKernel" in text[:200])
    offsets = {int(offset, 16) for offset in re.findall(r"LDG\S* .*\.64\+(0x[0-9a-f]+)\]", kernel)}
    *_, last_but_one, last = sorted(offsets)
    return f"elements {(last - last_but_one) // THREADS} bytes apart"

a, matrix = np.zeros(1024, np.float32), np.zeros((32, 32), np.float32)
print("cuda-cccl", version("cuda-cccl"))
print("a[::2]:", build_sum(View(a[::2])))
whole = build_sum(View(a))
print("a[::2] after a:", "the kernel of a" if build_sum(View(a[::2])) == whole else "another kernel")
for name, array in (("a[::2]", a[::2]), ("matrix[:, 0]", matrix[:, 0]), ("a", a)):
    print(f"squares of {name}: NumPy has", end=" ")
    print(f"elements {array.strides[0]} bytes apart, the kernel", describe_step(TransformIterator(View(array), square)))
PYTHON
"$work/venv/bin/python" -W ignore "$work/sums.py" "$work/sums.cubin" | tee "$work/seen"

expected='cuda-cccl 1.2.1
a[::2]: Non-contiguous arrays are not supported.
a[::2] after a: the kernel of a
squares of a[::2]: NumPy has elements 8 bytes apart, the kernel elements 4 bytes apart
squares of matrix[:, 0]: NumPy has elements 128 bytes apart, the kernel elements 4 bytes apart
squares of a: NumPy has elements 4 bytes apart, the kernel elements 4 bytes apart'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
