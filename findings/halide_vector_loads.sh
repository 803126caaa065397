#!/usr/bin/env bash
# Guess: vectorize(4) within a GPU thread makes accesses of 16 bytes if set_host_alignment(16) promises the alignment
# of input and output. Without the promise it makes four of 4 bytes.
# What happens: the promise changes nothing. Stores have 16 bytes without it. Loads have 16 only if the first
# coordinates of both buffers are fixed, by dim(0).set_min(0); else they are four of 4 bytes, 16 bytes apart from the
# next thread's. So are loads and stores of the last block, unless it is whole: it moves back, and repeats elements of
# the one before.
# Version: Halide 21.0.0, PTX for sm_80, which needs no GPU.
# Why it matters: buffers that begin at 0, as nearly all do, are still read with 4 times the requests and sectors. A
# length that 512 does not divide counts more elements than it has.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" halide==21.0.0
export PYTHONPATH="$work/packages"

cat >"$work/accesses.py" <<'PYTHON'
import importlib.metadata
import re
import sys

import halide as hl

TARGET = hl.Target("host-cuda-cuda_capability_80-no_runtime")

def compile_scale(aligned=False, minima="", length=None):
    """Compile output[x] = 2 * source[x], four elements a thread; return the PTX, which the assembly holds as text."""
    x, block, thread, lane = (hl.Var(name) for name in ("x", "block", "thread", "lane"))
    source = hl.ImageParam(hl.Float(32), 1, "source")
    scale = hl.Func("scale")
    scale[x] = 2.0 * source[x]
    scale.split(x, block, thread, 512).split(thread, thread, lane, 4)
    scale.vectorize(lane).gpu_blocks(block).gpu_threads(thread)
    for name, buffer in ("input", source), ("output", scale.output_buffer()):
        if aligned:
            buffer.set_host_alignment(16)
        if name in minima:
            buffer.dim(0).set_min(0)
    if length:
        scale.output_buffer().dim(0).set_bounds(0, length)
    path = sys.argv[1] + "/scale.s"
    scale.compile_to({hl.OutputFileType.assembly: path}, [source], "scale", TARGET)
    with open(path) as file:
        return file.read()

def describe(ptx):
    accesses = [a + width for a, width in re.findall(r"\b(ld|st)\.global(?:\.nc)?(\S*) ", ptx.replace("\\t", " "))]
    return ", ".join(f"{accesses.count(access)} {access}" for access in dict.fromkeys(accesses))

print("halide", importlib.metadata.version("halide"))
print("accesses of a block of 512 elements and of the last block:")
for aligned in False, True:
    for minima in "", "input", "output", "input and output":
        print(f"aligned {aligned}, minimum of {minima or 'none'} known: {describe(compile_scale(aligned, minima))}")
for length in 1024, 1001:
    print(f"{length} elements: {describe(compile_scale(minima='input', length=length))}")
PYTHON
python3 "$work/accesses.py" "$work" | tee "$work/seen"

scalar='8 ld.b32, 1 st.v4.b32, 4 st.b32'
expected="halide 21.0.0
accesses of a block of 512 elements and of the last block:
$(for aligned in False True; do
  echo "aligned $aligned, minimum of none known: $scalar
aligned $aligned, minimum of input known: $scalar
aligned $aligned, minimum of output known: $scalar
aligned $aligned, minimum of input and output known: 1 ld.v4.b32, 1 st.v4.b32, 4 ld.b32, 4 st.b32"
done)
1024 elements: 1 ld.v4.b32, 1 st.v4.b32
1001 elements: 4 ld.b32, 4 st.b32, 1 ld.v4.b32, 1 st.v4.b32"
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
