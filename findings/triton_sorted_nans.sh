#!/usr/bin/env bash
# Guess: tl.sort() of floats with a NaN returns all elements in some order, the NaN at an end, as torch.sort() and
# numpy.sort() do; tl.topk() returns elements that are there once, once.
# What happens: elements are lost, others stand twice. Each of the two lanes that compare decides for itself, by `(x >
# y) != (flip ^ is_right)`, with its own value first. If one value is NaN, both comparisons are false: one lane takes
# the neighbour's value, and the other keeps its own.
# Version: Triton 3.9.0, its library's functions run by its interpreter. Compiled for sm_90 the comparison is the same,
# and an emulation of the PTX gave the same elements. Seen on 1 December 2026.
# Why it matters: one NaN among logits or distances makes topk() return others' values and lose the largest. Keys that
# carry an index in their low bits name the wrong rows, which a gather then reads.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check triton==3.9.0 torch==2.13.0 numpy==2.4.6
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/sort_kernel.py" <<'PYTHON'
import re
from collections import Counter

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def sort(output, largest, source):
    place = tl.arange(0, 8)
    x = tl.load(source + place)
    tl.store(output + place, tl.sort(x))
    tl.store(largest + tl.arange(0, 4), tl.topk(x, 4))

def show(numbers):
    return " ".join(f"{number:g}" for number in numbers) or "none"

if triton.knobs.runtime.interpret:
    print("triton", triton.__version__)
    nan = float("nan")
    for numbers in (
        [3, 1, 4, 0, 5, 9, 2, 6], [3, 1, 4, 0, nan, 9, 2, 6], [9, nan, 1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7, nan]
    ):
        output, largest = torch.zeros(8), torch.zeros(4)
        sort[(1,)](output, largest, torch.tensor(numbers, dtype=torch.float32))
        doubled = [number for number, times in Counter(output.tolist()).items() if times > 1]
        lost = [number for number in numbers if number not in output.tolist() and number == number]
        print(f"{show(numbers)}: sorted {show(output)}, topk {show(largest)},",
              f"lost {show(lost)}, doubled {show(doubled)}")
else:
    signature = {"output": "*fp32", "largest": "*fp32", "source": "*fp32"}
    asm = triton.compile(ASTSource(sort, signature), target=GPUTarget("cuda", 90, 32)).asm
    print("comparisons of floats, compiled:", *sorted(set(re.findall(r"setp\.\w+\.f32", asm["ptx"]))))
PYTHON
for interpreted in 1 0; do
  TRITON_INTERPRET=$interpreted "$work/venv/bin/python" -W ignore "$work/sort_kernel.py"
done | tee "$work/seen"

expected='triton 3.9.0
3 1 4 0 5 9 2 6: sorted 0 1 2 3 4 5 6 9, topk 9 6 5 4, lost none, doubled none
3 1 4 0 nan 9 2 6: sorted 0 1 2 3 2 6 4 6, topk 6 4 6 2, lost 9, doubled 2 6
9 nan 1 2 3 4 5 6: sorted 1 2 3 4 5 6 9 9, topk 9 9 6 5, lost none, doubled 9
1 2 3 4 5 6 7 nan: sorted 1 2 3 4 1 2 3 4, topk 4 3 2 1, lost 5 6 7, doubled 1 2 3 4
comparisons of floats, compiled: setp.gt.f32'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
