#!/usr/bin/env bash
# Guess: a kernel of `te.compute((262144, 32768), ...)` reaches each element of its tensors, whose lengths are known, or
# TVM refuses them.
# What happens: lengths given as Python's integers make indices of 32 bits, for 2^33 elements, too. Block 2,097,152 of
# 1024 threads begins 8 GiB before the tensor, and block 4,194,304 at element 0. Lengths given as IntImm("int64", ...)
# make indices of 64 bits.
# Version: TVM 0.27.0.post1, a target of sm_90, which needs no GPU. Seen on 30 November 2026.
# Why it matters: 32 GiB of float32 fit into a GPU, and 4 GiB of float16 are enough for a negative index. Results are
# wrong without an error. From element 2^32 on the kernel reads what is in a cache already, and looks faster.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" apache-tvm==0.27.0.post1
export PYTHONPATH="$work/packages"

cat >"$work/indices.py" <<'PYTHON'
import ctypes
import re

import tvm
from tvm import te
from tvm.s_tir import dlight
from tvm.tirx import IntImm

TARGET = tvm.target.Target({"kind": "cuda", "arch": "sm_90", "max_threads_per_block": 1024,
                            "max_shared_memory_per_block": 49152, "thread_warp_size": 32})

def find_index(*shape):
    """Compile an addition of 1 with the default schedule; return the index that it stores to, in CUDA C++."""
    source = te.placeholder(shape, name="source", dtype="float32")
    output = te.compute(shape, lambda i, j: source[i, j] + 1, name="output")
    with TARGET:
        module = tvm.IRModule({"main": te.create_prim_func([source, output])})
        module = dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())(module)
    code = tvm.compile(module, target=tvm.target.Target(TARGET, host="llvm")).mod.imports[0].inspect_source()
    return re.findall(r"output_ptr\[(.*?)\] = ", code)[-1]

def evaluate(index, block):
    """Compute the index of thread 0 of a block, in the type that the expression is cast to."""
    kind = ctypes.c_int64 if "int64_t" in index else ctypes.c_int32
    expression = re.sub(r"\(int(64_t)?\)", "", index).replace("blockIdx.x", str(block)).replace("threadIdx.x", "0")
    return kind(eval(expression)).value

print("tvm", tvm.__version__)
for name, length in ("int", int), ("IntImm", lambda n: IntImm("int64", n)):
    index = find_index(length(2**18), length(2**15))
    print(f"{name}: {index}")
    for block in 2**21 - 1, 2**21, 2**22:
        print(f"  block {block}: element {evaluate(index, block)}, of {1024 * block}")
PYTHON
python3 -W ignore "$work/indices.py" | tee "$work/seen"

expected='tvm 0.27.0.post1
int: ((((int)blockIdx.x) * 1024) + ((int)threadIdx.x))
  block 2097151: element 2147482624, of 2147482624
  block 2097152: element -2147483648, of 2147483648
  block 4194304: element 0, of 4294967296
IntImm: ((((int64_t)blockIdx.x) * (int64_t)1024) + ((int64_t)threadIdx.x))
  block 2097151: element 2147482624, of 2147482624
  block 2097152: element 2147483648, of 2147483648
  block 4194304: element 4294967296, of 4294967296'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
