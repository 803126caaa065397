#!/usr/bin/env bash
# Guess, that of argmax() written before the run: Hidet's `cumsum()` of rows reads each element once or twice, and
# `argmax()` reads neighbours in neighbouring lanes, as its `sum()` and `max()` do.
# What happens: each thread of cumsum() adds up all elements from the row's first one to its own. In a row of 1000
# there are 500,500 loads, in one of 8192 33,558,528. Sums of float16 are added in float16: of ones none passes 2048.
# A thread of argmax() and argmin() reads a whole row alone, so that lanes lie a row apart: 32 sectors a load.
# Version: hidet 0.6.1, its CUDA code for sm_80, which needs no GPU; torch 2.13.0. Seen on 1 December 2026.
# Why it matters: a prefix sum of 8192 elements a row makes 4096 times the loads. `torch.compile` with
# `backend="hidet"` maps `torch.cumsum()`, `torch.argmax()` and `torch.max(x, dim)` to these kernels.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/python -m pip install -qq --disable-pip-version-check hidet==0.6.1 torch==2.13.0 numpy==1.26.4
export HOME="$work"

cat >scan.py <<'PYTHON'
import re
from types import SimpleNamespace

import hidet
import torch
from hidet.backend import codegen
from hidet.transforms import PassContext, lower

# No GPU is asked: the questions of the compiler have the answers of an A100.
hidet.cuda.current_device, hidet.cuda.device_count, hidet.cuda.available = lambda: 0, lambda: 1, lambda: True
hidet.cuda.compute_capability = lambda *_: (8, 0)
hidet.cuda.properties = lambda *_: SimpleNamespace(name=b"A100", multiProcessorCount=108, sharedMemPerBlock=49152)
hidet.option.cuda.arch("sm_80")
hidet.option.cache_dir("cache")

def generate_kernel(operate, columns, dtype="float32"):
    """Return the CUDA code of an operation on the rows of a matrix, with short names of the indices."""
    matrix = hidet.symbol([1000, columns], dtype=dtype, device="cuda")
    (node,) = hidet.graph.optimize(hidet.trace_from(operate(matrix), [matrix])).nodes
    module = node.task.implement(target="cuda", working_dir="cache")
    with PassContext():
        codegen(lower(getattr(module[0], "module", module[0])), src_out_path="./kernel.cu", target="cuda")
    code = open("kernel.cu").read()
    return code.replace("(int)threadIdx.x", "thread").replace("(int)blockIdx.x", "block")

print("hidet", hidet.__version__, "torch", torch.__version__.split("+")[0])
for columns, dtype in (1000, "float32"), (8192, "float32"), (1000, "float16"):
    kernel = generate_kernel(lambda x: hidet.ops.cumsum(x, 1), columns, dtype)
    pattern = r"(\w+) acc_Sum = .*?v < \((.*?)\)\); v.*?\+ (x\[.*?\])\)"
    accumulator, turns, load = re.search(pattern, kernel, re.DOTALL).groups()
    print(f"cumsum of {dtype}, {columns} columns: {accumulator}, v up to {turns}, {load}")
for name in "argmax", "argmin":
    kernel = generate_kernel(lambda x: getattr(hidet.ops, name)(x, 1), 1000)
    print(f"{name}: v up to {re.search(r'v < (.*?)[)]; v', kernel)[1]}, {re.search(r'= (x.*);', kernel)[1]}")
print("max:", re.search(r"= (x.*);", generate_kernel(lambda x: hidet.ops.max(x, [1]), 1000))[1])
print("ones added in float16:", torch.tensor(2048, dtype=torch.float16).add(1).item())
PYTHON
venv/bin/python -W ignore scan.py 2>messages | tee seen

expected='hidet 0.6.1 torch 2.13.0
cumsum of float32, 1000 columns: float, v up to (((block * 512) + thread) % 1000) + 1, x[(((((block * 512) + thread) / 1000) * 1000) + v)]
cumsum of float32, 8192 columns: float, v up to (((block * 512) + thread) % 8192) + 1, x[(((((block * 512) + thread) / 8192) * 8192) + v)]
cumsum of float16, 1000 columns: half, v up to (((block * 512) + thread) % 1000) + 1, x[(((((block * 512) + thread) / 1000) * 1000) + v)]
argmax: v up to 1000, x[((block * 512000) + (thread * 1000) + v)]
argmin: v up to 1000, x[((block * 512000) + (thread * 1000) + v)]
max: x[((block * 1000) + thread)]
ones added in float16: 2048.0'
[ "$(cat seen)" = "$expected" ] || { cat messages >&2; echo 'the behaviour changed' >&2; exit 1; }
