#!/usr/bin/env bash
# Guess: `np.sum(a)` of N float32 in a DaCe program, optimized for a GPU, is the sum, for each N.
# What happens: below 1024 elements it is 0. The number of blocks is `N / 1024 + 1023 / 1024` in C, which divides
# integers: the second term is 0. The function that launches returns without a launch, after another kernel stored 0.
# From 1024 on each element is added. A length that is a constant of the program is right: it has one block.
# Version: DaCe 1.0.2, networkx 3.4.2; its CUDA code, which needs no GPU.
# Why it matters: a wrong sum without an error, of short arrays alone. A benchmark of small sizes measures a kernel that
# does not run. 2.0.0b1, a pre-release, rounds up.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check dace==1.0.2 networkx==3.4.2 numpy==1.26.4
export HOME="$work"
cd "$work"

cat >"$work/sums.py" <<'PYTHON'
import re

import dace
import numpy as np
from dace.transformation.auto.auto_optimize import auto_optimize

N = dace.symbol("N")

@dace.program
def sum_symbolic(source: dace.float32[N], output: dace.float32[1]):
    output[0] = np.sum(source)

@dace.program
def sum_1000(source: dace.float32[1000], output: dace.float32[1]):
    output[0] = np.sum(source)

def find_launch(program):
    """Optimize for a GPU; return the blocks of the kernel that adds, and when its launch is left out, in C."""
    sdfg = program.to_sdfg()
    auto_optimize(sdfg, dace.DeviceType.GPU)
    (code,) = (part.clean_code for part in sdfg.generate_code() if part.language == "cu")
    launcher = re.search(r"\nvoid __dace_runkernel_grid.*?\n}", code, re.DOTALL)[0]
    skipped = re.search(r"if \((.*)\) {\s+return;", launcher)
    return re.search(r"dim3\((.*?), 1, 1\), dim3\(32", launcher)[1], skipped and skipped[1]

def evaluate(expression, length):
    return eval(expression.replace("/", "//"), {"int_ceil": lambda a, b: -(-a // b), "N": length})

print("dace", dace.__version__)
blocks, skipped = find_launch(sum_symbolic)
print("blocks:", blocks)
for length in 100, 1023, 1024, 5000, 2**20 - 1:
    launch = "not launched" if evaluate(skipped, length) else f"{evaluate(blocks, length)} blocks"
    print(f"N = {length}: {launch}")
print("constant 1000: blocks, condition:", *find_launch(sum_1000))
PYTHON
"$work/venv/bin/python" -W ignore "$work/sums.py" | tee "$work/seen"

expected='dace 1.0.2
blocks: int_ceil((((N / 1024) + (1023 / 1024)) / 1), 1)
N = 100: not launched
N = 1023: not launched
N = 1024: 1 blocks
N = 5000: 4 blocks
N = 1048575: 1023 blocks
constant 1000: blocks, condition: 1 None'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
