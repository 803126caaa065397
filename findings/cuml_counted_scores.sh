#!/usr/bin/env bash
# Guess, written after reading the source: `cuml.metrics.roc_auc_score()` of 30 million predicted classes is
# scikit-learn's.
# What happens: a kernel counts the labels of each distinct score by an atomic addition of 1 in float32. Added one
# after the other, a count stops at 16,777,216, where adding 1 changes nothing. 22 million true negatives are 16.8
# million: the area is 0.897 where 0.908 is right. `precision_recall_curve()` has the same counts.
# Version: cuML 26.10.0, its Python code run with NumPy in CuPy's place, and its kernel on the CPU by GCC. Seen on 1
# December 2026.
# Why it matters: classes, trees and rounded probabilities have few distinct scores, and cuML is meant for tables of
# this length. The area depends on how many rows there are, and nothing is raised.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/python -m pip install -qq --disable-pip-version-check numpy==2.4.6
venv/bin/python -m pip install -qq --disable-pip-version-check --no-deps --target packages cuml-cu12==26.10.0

cat >score.py <<'PYTHON'
import ctypes
import math
import subprocess

import numpy

class RawKernel:
    """Compile a kernel for the CPU, and run its threads one after the other."""

    def __init__(self, code, name):
        before = """struct { int x; } blockDim{1}, blockIdx, threadIdx{0};
            #define __global__
            void atomicAdd(float *address, float value) { *address += value; }"""
        after = f"""extern "C" void run(const int *group, const float *x, float *result, int N) {{
            for (blockIdx.x = 0; blockIdx.x < N; blockIdx.x++) {name}(group, x, result, N); }}"""
        open("kernel.cpp", "w").write(f"{before}\n{code}\n{after}")
        subprocess.run("g++ -O1 -shared -fPIC -o kernel.so kernel.cpp".split(), check=True)
        self.run = ctypes.CDLL("./kernel.so").run

    def __call__(self, blocks, threads, arguments):
        *arrays, count = arguments
        self.run(*(ctypes.c_void_p(array.ctypes.data) for array in arrays), ctypes.c_int(count))

numpy.RawKernel = RawKernel
source = open("packages/cuml/metrics/_ranking.py").read()
functions = {"cp": numpy, "np": numpy, "math": math}
exec(source[source.index("def _binary_clf_curve") :], functions)

print("cuML 26.10.0")
for part in 100, 1:
    # Of 24 million negatives 2 million are predicted to be positive, of 6 million positives 5.4 million.
    counts = numpy.array([22_000_000, 2_000_000, 600_000, 5_400_000]) // part
    labels, scores = (numpy.repeat(numpy.float32(values), counts) for values in ((0, 0, 1, 1), (0, 1, 0, 1)))
    area = functions["_binary_roc_auc_score"](labels, scores)
    right = (counts[3] / (counts[2] + counts[3]) + counts[0] / (counts[0] + counts[1])) / 2
    false_positives, _, _ = functions["_binary_clf_curve"](labels, scores)
    print(f"{counts.sum()} rows: area {area:.4f}, right {right:.4f};", end=" ")
    print(f"{false_positives[-1]:.0f} of {counts[:2].sum()} negatives are counted")
PYTHON
venv/bin/python score.py 2>messages | tee seen

expected='cuML 26.10.0
300000 rows: area 0.9083, right 0.9083; 240000 of 240000 negatives are counted
30000000 rows: area 0.8967, right 0.9083; 18777216 of 24000000 negatives are counted'
[ "$(cat seen)" = "$expected" ] || { cat messages >&2; echo 'the behaviour changed' >&2; exit 1; }
