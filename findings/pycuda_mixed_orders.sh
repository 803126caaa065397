#!/usr/bin/env bash
# Guess: a + a.T of PyCUDA's GPUArray is the sum of a matrix and its transpose, as in NumPy, or an error. Views that are
# not contiguous are refused with one.
# What happens: the sum is 2 * a, silently. A transpose passes the check, since it is contiguous in Fortran's order. The
# kernel then adds what stands at the same place of memory. Differences, products and maximum() are alike. A matrix minus
# the same matrix in Fortran's order is not 0.
# Version: PyCUDA 2026.1. Its Python code and its generated CUDA C++ run on the CPU. Seen on 30 November 2026.
# Why it matters: results are wrong without an error. A benchmark of a matrix and its transpose counts coalesced accesses
# of both, where one that adds them reads one with a stride.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --target packages numpy==2.3.5 pytools==2025.2.5 mako==1.3.10 siphash24==1.8
# Building PyCUDA needs CUDA, so the link of its sources comes from the index.
python3 - <<'PYTHON'
import re
import tarfile
from urllib.request import urlopen

index = urlopen("https://pypi.org/simple/pycuda/").read().decode()
(link,) = re.findall(r'href="([^"#]*/pycuda-2026\.1\.tar\.gz)', index)
with tarfile.open(fileobj=urlopen(link), mode="r|gz") as archive:
    archive.extractall(filter="data")
PYTHON

cat >run.py <<'PYTHON'
"""Run PyCUDA with a driver that keeps arrays on the host and runs each kernel, built by g++, with one thread."""

import ctypes
import subprocess
import sys
from unittest.mock import MagicMock

import numpy as np

sys.modules["pycuda._driver"] = MagicMock()
sys.modules["pycuda.driver"] = driver = MagicMock()

class Memory:
    def __init__(self, size):
        self.bytes = np.zeros(size, np.uint8)

    def __int__(self):
        return self.bytes.ctypes.data

def store(target, source):
    ctypes.memmove(int(target), source.ctypes.data, source.nbytes)

def load(target, source):
    ctypes.memmove(target.ctypes.data, int(source), target.nbytes)

driver.mem_alloc, driver.memcpy_htod, driver.memcpy_dtoh = Memory, store, load

class Kernel:
    TYPES = {"P": ctypes.c_void_p, "f": ctypes.c_float, "d": ctypes.c_double, "L": ctypes.c_size_t, "b": ctypes.c_bool}

    def __init__(self, function):
        self.function = function

    def prepare(self, types):
        self.function.argtypes = [self.TYPES[letter] for letter in types]

    def prepared_async_call(self, grid, block, stream, *arguments):
        self.function(*(int(value) if isinstance(value, Memory) else value for value in arguments))

class SourceModule:
    def __init__(self, source, **options):
        prefix = "#include <cstddef>\n#include <cmath>\n#define __global__\nstruct { size_t x = 1; } gridDim, blockDim;\n" \
            "struct { size_t x = 0; } threadIdx, blockIdx;\n"
        with open("kernel.cpp", "w") as file:
            file.write(prefix + source.replace("#include <pycuda-complex.hpp>", ""))
        library = f"./kernel{id(self)}.so"
        subprocess.run(["g++", "-shared", "-fPIC", "kernel.cpp", "-o", library], check=True)
        self.library = ctypes.CDLL(library)

    def get_function(self, name):
        return Kernel(self.library[name])

sys.modules["pycuda.compiler"] = MagicMock(SourceModule=SourceModule)
import pycuda.characterize
import pycuda.tools

pycuda.characterize.has_double_support = lambda: True
from pycuda import gpuarray
gpuarray.splay = lambda n: ((1, 1), (1, 1, 1))

a = np.arange(9, dtype=np.float32).reshape(3, 3)
on_gpu = gpuarray.to_gpu(a)
fortran = gpuarray.to_gpu(np.asfortranarray(a))
pairs = {
    "a.T": (on_gpu.T, a.T),
    "a + a.T": (on_gpu + on_gpu.T, a + a.T),
    "a - a.T": (on_gpu - on_gpu.T, a - a.T),
    "a * a.T": (on_gpu * on_gpu.T, a * a.T),
    "a - the same in Fortran's order": (on_gpu - fortran, a - a),
    "maximum(a, a.T)": (gpuarray.maximum(on_gpu, on_gpu.T), np.maximum(a, a.T)),
}
for name, (result, expected) in pairs.items():
    print(f"{name}: {result.get().ravel().astype(int).tolist()}", "right" if np.array_equal(result.get(), expected) else "wrong")
try:
    on_gpu[:, ::2] + on_gpu[:, ::2]
except RuntimeError as error:
    print("a[:, ::2] + a[:, ::2]:", error)
PYTHON
echo 'PyCUDA 2026.1'
PYTHONPATH=packages:pycuda-2026.1 python3 run.py | tee seen

expected="a.T: [0, 3, 6, 1, 4, 7, 2, 5, 8] right
a + a.T: [0, 2, 4, 6, 8, 10, 12, 14, 16] wrong
a - a.T: [0, 0, 0, 0, 0, 0, 0, 0, 0] wrong
a * a.T: [0, 1, 4, 9, 16, 25, 36, 49, 64] wrong
a - the same in Fortran's order: [0, -2, -4, 2, 0, -2, 4, 2, 0] wrong
maximum(a, a.T): [0, 1, 2, 3, 4, 5, 6, 7, 8] wrong
a[:, ::2] + a[:, ::2]: only contiguous arrays may be used as arguments to this operation"
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
