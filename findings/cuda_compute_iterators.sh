#!/usr/bin/env bash
# Guess: an iterator of cuda.compute reads an element as the array below it is read. For a complex64
# that is one access of 8 bytes, and for a struct of four float32 four of 4.
# What happens: through ReverseIterator, TransformIterator, PermutationIterator or ZipIterator both
# are read one byte at a time: 8 or 16 loads an element. An array's own complex64 is two loads of 4
# bytes, since NumPy aligns it to 4. Of float32 an iterator's load is one.
# Version: cuda.compute of cuda-cccl 1.2.1, built for sm_90 ahead of time, which needs no GPU;
# nvdisasm 13.5.37.
# Why it matters: the lanes of each such load lie 8 or 16 bytes apart, and each sector is asked for
# 8 or 16 times. A contiguous array shows it, and the same benchmark of float32 does not.
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
from cuda.compute import PermutationIterator, ReverseIterator, TransformIterator, ZipIterator
from cuda.compute import gpu_struct, make_reduce_into

Struct = gpu_struct({name: np.float32 for name in "xyzw"}, "Struct")
Pair = gpu_struct({"first": np.complex64, "second": np.float32}, "Pair")

class Array:
    """A contiguous array whose address is a multiple of 256; nothing reads it."""

    def __init__(self, dtype):
        self.dtype, self.shape = np.dtype(dtype), (1024,)
        description = {"typestr": self.dtype.str, "descr": self.dtype.descr, "data": (1 << 32, False)}
        self.__cuda_array_interface__ = {"shape": self.shape, "strides": None, "version": 3, **description}

def add(left, right):
    return left + right

def add_structs(left, right):
    return Struct(left.x + right.x, left.y + right.y, left.z + right.z, left.w + right.w)

def add_pairs(left, right):
    return Pair(left[0] + right[0], left[1] + right[1])

def describe_loads(source, start, operation=add):
    """Build a sum for sm_90; return the loads from global memory in the kernel that reads the source."""
    output = Array(start.dtype)
    sums = make_reduce_into(d_in=source, d_out=output, op=operation, h_init=start, compute_capability=90)
    with open(sys.argv[1], "wb") as file:
        file.write(sums.build_results[90]._get_cubin())
    code = subprocess.run(["nvdisasm", "-c", sys.argv[1]], check=True, capture_output=True, text=True).stdout
    (kernel,) = (text for text in re.split(r"\n(?=\.text\.)", code) if "DeviceReduceKernel" in text[:200])
    loads = re.findall(r"\bLDG?\b[.A-Z0-9]*", kernel)
    return ", ".join(f"{loads.count(name)} {name}" for name in sorted(set(loads)))

floats, complexes, structs, indices = (Array(dtype) for dtype in (np.float32, np.complex64, Struct.dtype, np.int32))
zero, complex_zero, struct_zero = np.zeros(1, np.float32), np.zeros(1, np.complex64), Struct(0, 0, 0, 0)
print("cuda-cccl", version("cuda-cccl"))
print("float32:", describe_loads(floats, zero))
print("float32, reversed:", describe_loads(ReverseIterator(floats), zero))
print("complex64:", describe_loads(complexes, complex_zero))
print("complex64, reversed:", describe_loads(ReverseIterator(complexes), complex_zero))
print("complex64, the real part:", describe_loads(TransformIterator(complexes, lambda value: value.real), zero))
print("complex64, by index:", describe_loads(PermutationIterator(complexes, indices), complex_zero))
print("complex64 with float32:", describe_loads(ZipIterator(complexes, floats), Pair(0, 0), add_pairs))
print("struct:", describe_loads(structs, struct_zero, add_structs))
print("struct, reversed:", describe_loads(ReverseIterator(structs), struct_zero, add_structs))
PYTHON
"$work/venv/bin/python" -W ignore "$work/sums.py" "$work/sums.cubin" | tee "$work/seen"

expected='cuda-cccl 1.2.1
float32: 8 LDG.E.128.CONSTANT, 150 LDG.E.CONSTANT
float32, reversed: 91 LDG.E
complex64: 108 LDG.E.CONSTANT
complex64, reversed: 184 LDG.E.U8
complex64, the real part: 172 LDG.E.U8
complex64, by index: 23 LDG.E, 184 LDG.E.U8
complex64 with float32: 13 LDG.E, 104 LDG.E.U8
struct: 44 LDG.E.CONSTANT
struct, reversed: 176 LDG.E.U8'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
