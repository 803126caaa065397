#!/usr/bin/env bash
# Guess, written before the run: Hidet's `min()`, `max()` and `sum()` of int32 and int64 are those of integers, as
# NumPy's.
# What happens: kernels convert each element to float32, reduce in it, and convert the result back. Integers above
# 16,777,216 are rounded: the maximum of 16,777,217 and 16,777,216 is 16,777,216, where Hidet's own kernel for CPUs
# returns 16,777,217. Sums are rounded as soon as they pass this number.
# Version: hidet 0.6.1, its CUDA code for sm_80, which needs no GPU; torch 2.13.0. Seen on 1 December 2026.
# Why it matters: indices, hashes, times in microseconds and keys are integers of this size. `torch.compile` with
# `backend="hidet"` maps PyTorch's reductions to these operators.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/python -m pip install -qq --disable-pip-version-check hidet==0.6.1 torch==2.13.0 numpy==1.26.4
export HOME="$work"

cat >reduce.py <<'PYTHON'
import re
from types import SimpleNamespace

import hidet
import numpy
import torch
from hidet.backend import codegen
from hidet.transforms import PassContext, lower

print("hidet", hidet.__version__, "torch", torch.__version__.split("+")[0])
rows = numpy.array([[16777217, 16777216]], dtype=numpy.int32)
print("on the CPU the maximum of", *rows[0], "is", *hidet.ops.max(hidet.asarray(rows), [1]).numpy(), end=", ")
print("and in float32", int(rows.astype(numpy.float32).max()))

# No GPU is asked: the questions of the compiler have the answers of an A100.
hidet.cuda.current_device, hidet.cuda.device_count, hidet.cuda.available = lambda: 0, lambda: 1, lambda: True
hidet.cuda.compute_capability = lambda *_: (8, 0)
hidet.cuda.properties = lambda *_: SimpleNamespace(name=b"A100", multiProcessorCount=108, sharedMemPerBlock=49152)
hidet.option.cuda.arch("sm_80")
hidet.option.cache_dir("cache")

def generate_kernel(reduce, dtype):
    """Return the CUDA code of a reduction of a matrix's rows."""
    matrix = hidet.symbol([100, 1000], dtype=dtype, device="cuda")
    (node,) = hidet.graph.optimize(hidet.trace_from(reduce(matrix, [1]), [matrix])).nodes
    module = node.task.implement(target="cuda", working_dir="cache")
    with PassContext():
        codegen(lower(getattr(module[0], "module", module[0])), src_out_path="./kernel.cu", target="cuda")
    return open("kernel.cu").read()

for name in "max", "min", "sum":
    for dtype in "int32", "int64":
        kernel = generate_kernel(getattr(hidet.ops, name), dtype)
        accumulator, update = re.search(r"(\w+) rv = ", kernel)[1], re.search(r"rv = (.*vec_read.*);", kernel)[1]
        store = re.search(r"y\[.*= \((.*rv.*)\);", kernel)[1]
        print(f"{name} of {dtype}: {accumulator} rv = {update}, stored as {store}")
PYTHON
venv/bin/python -W ignore reduce.py 2>messages | tee seen

expected='hidet 0.6.1 torch 2.13.0
on the CPU the maximum of 16777217 16777216 is 16777217, and in float32 16777216
max of int32: float rv = fmaxf(rv, ((float)(vec_read))), stored as (int32_t)(rv)
max of int64: float rv = fmaxf(rv, ((float)(vec_read))), stored as (int64_t)(rv)
min of int32: float rv = fminf(rv, ((float)(vec_read))), stored as (int32_t)(rv)
min of int64: float rv = fminf(rv, ((float)(vec_read))), stored as (int64_t)(rv)
sum of int32: float rv = (((float)(vec_read)) + rv), stored as (int32_t)(rv)
sum of int64: float rv = (((float)(vec_read)) + rv), stored as (int64_t)(rv)'
[ "$(cat seen)" = "$expected" ] || { cat messages >&2; echo 'the behaviour changed' >&2; exit 1; }
