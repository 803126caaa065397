#!/usr/bin/env bash
# Guess: a + a.T of PyOpenCL's arrays is the sum of a matrix and its transpose, as in NumPy, or an error. Views that are
# not contiguous are refused with one, as is an assignment "between arrays of differing strides".
# What happens: the sum is 2 * a, silently: both are contiguous, and are added in the order of memory. Differences,
# products, quotients, powers, comparisons, maximum(), dot() and if_positive() are alike. One array suffices, too:
# a.T.astype(numpy.float64) is a in the other type, where a.T.copy() is the transpose.
# Version: PyOpenCL 2026.1.4, executed on the CPU by POCL 3.0. Seen on 30 November 2026.
# Why it matters: results are wrong without an error, for an operation that NumPy's users write daily. A benchmark of
# a matrix and its transpose finds coalesced accesses of both. PyCUDA is alike for two arrays (pycuda_mixed_orders).
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check pyopencl==2026.1.4 pocl-binary-distribution==3.0 \
  pytools==2026.1.1 mako==1.3.10 numpy==2.4.6
export HOME="$work" POCL_CACHE_DIR="$work/cache"

cat >"$work/sums.py" <<'PYTHON'
import numpy as np
import pyopencl
from pyopencl import array

queue = pyopencl.CommandQueue(pyopencl.create_some_context(interactive=False))
matrix = np.arange(9, dtype=np.float32).reshape(3, 3)
a, fortran = array.to_device(queue, matrix), array.to_device(queue, np.asfortranarray(matrix))

def compare(text):
    """Evaluate with PyOpenCL's arrays and with NumPy's."""
    host = {"a": matrix, "fortran": np.asfortranarray(matrix), "maximum": np.maximum, "dot": lambda x, y: (x * y).sum()}
    device = {"a": a, "fortran": fortran, "maximum": array.maximum, "dot": array.dot}
    names = {"float64": np.float64}
    try:
        result = eval(text, device | names)
    except (NotImplementedError, RuntimeError) as error:
        return type(error).__name__
    return "right" if np.array_equal(result.get(), eval(text, host | names)) else f"wrong, {result.get().tolist()}"

print("pyopencl", pyopencl.VERSION_TEXT)
for text in ("a + a", "a.T.copy()", "a[::2] + 1", "a + a.T", "a - fortran", "a == a.T", "maximum(a, a.T)", "dot(a, a.T)",
             "a.T.astype(float64)"):
    print(f"{text}: {compare(text)}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/sums.py" | tee "$work/seen"

expected='pyopencl 2026.1.4
a + a: right
a.T.copy(): right
a[::2] + 1: NotImplementedError
a + a.T: wrong, [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0], [12.0, 14.0, 16.0]]
a - fortran: wrong, [[0.0, -2.0, -4.0], [2.0, 0.0, -2.0], [4.0, 2.0, 0.0]]
a == a.T: wrong, [[1, 1, 1], [1, 1, 1], [1, 1, 1]]
maximum(a, a.T): wrong, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
dot(a, a.T): wrong, 204.0
a.T.astype(float64): wrong, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
