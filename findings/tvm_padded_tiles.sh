#!/usr/bin/env bash
# Guess: the schedule that TVM applies to a transpose pads each row of its tile in shared memory by one element. So it
# has no bank conflicts.
# What happens: the rows are 33 floats apart, but hold 8, and a warp is in four of them at once. Rows that begin one
# bank apart overlap: the store takes 4 passes, and the load, of two columns at once, 2. The tile takes 2112 bytes for
# 512. The exchange of a column sum, with 16 floats a row, takes 8 passes.
# Version: TVM (apache-tvm) 0.27.0.post1, dlight's schedules for a target of sm_90, which needs no GPU.
# Why it matters: a kernel of the default schedule is no baseline without bank conflicts, whatever its padding
# suggests.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" apache-tvm==0.27.0.post1
export PYTHONPATH="$work/packages"

cat >"$work/passes.py" <<'PYTHON'
import re
from collections import defaultdict

import tvm
from tvm import te
from tvm.s_tir import dlight

TARGET = tvm.target.Target({"kind": "cuda", "arch": "sm_90", "max_threads_per_block": 1024,
                            "max_shared_memory_per_block": 49152, "thread_warp_size": 32})

def schedule(function):
    """Apply the default schedules; return the width of a block and the CUDA C++ of the kernel."""
    with TARGET:
        rules = dlight.gpu.Reduction(), dlight.gpu.GeneralReduction(), dlight.gpu.Transpose(), dlight.gpu.Fallback()
        module = dlight.ApplyDefaultSchedule(*rules)(tvm.IRModule({"main": function}))
    width = re.search(r'thread_binding\((?:T\.int64\()?(\d+)\)?, thread="threadIdx\.x"\)', module.script())[1]
    code = tvm.compile(module, target=tvm.target.Target(TARGET, host="llvm")).mod.imports[0].inspect_source()
    return int(width), code[code.rindex("__global__"):]

def count_passes(index, width):
    """Count the distinct words that a warp's first 32 threads access in the bank that has most."""
    words = defaultdict(set)
    for thread in range(32):
        expression = index.replace("(int)threadIdx.x", str(thread % width)).replace("(int)threadIdx.y", str(thread // width))
        word = eval(expression)
        words[word % 32].add(word)
    return max(map(len, words.values()))

def report(name, *tensors):
    width, code = schedule(te.create_prim_func(tensors))
    tile, floats = re.search(r"__shared__.* (\w+)\[(\d+)\];", code).groups()
    print(f"{name}: {floats} floats in shared memory, blocks {width} wide")
    for index in list(dict.fromkeys(re.findall(re.escape(tile) + r"\)?\[([^]]+)\]", code)[1:]))[:2]:
        print(f"  {count_passes(index, width)} passes: {index.replace('(int)', '')}")

print("tvm", tvm.__version__)
source = te.placeholder((1024, 1024), name="source", dtype="float32")
row = te.reduce_axis((0, 1024), name="row")
report("transpose", source, te.compute((1024, 1024), lambda i, j: source[j, i]))
report("column sum", source, te.compute((1024,), lambda j: te.sum(source[row, j], axis=row)))
PYTHON
python3 "$work/passes.py" | tee "$work/seen"

expected='tvm 0.27.0.post1
transpose: 528 floats in shared memory, blocks 16 wide
  4 passes: ((((threadIdx.y) * 66) + (((threadIdx.x) >> 3) * 33)) + ((threadIdx.x) & 7))
  2 passes: (((threadIdx.x) * 33) + (threadIdx.y))
column sum: 256 floats in shared memory, blocks 16 wide
  8 passes: (((threadIdx.x) * 16) + (threadIdx.y))
  8 passes: ((((threadIdx.x) * 16) + (threadIdx.y)) + 8)'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
