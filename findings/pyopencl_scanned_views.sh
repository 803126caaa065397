#!/usr/bin/env bash
# Guess: `array.cumsum(a[4:12])` of PyOpenCL sums the elements of the view, as `array.sum(a[4:12])` does.
# What happens: it sums as many elements from a[0] on: the kernel gets the buffer, and not the view's offset. copy_if(),
# partition(), unique() and RadixSort are alike, as all are scans. Sums, maxima, sine, take() and assignments are right.
# Version: PyOpenCL 2026.1.4, executed on the CPU by POCL 3.0. Seen on 30 November 2026.
# Why it matters: the functions that compact and sort data give wrong results without an error. A benchmark of a shifted
# view measures the aligned accesses of the whole buffer instead.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check pyopencl==2026.1.4 pocl-binary-distribution==3.0 \
  pytools==2026.1.1 mako==1.3.10 numpy==2.4.6
export HOME="$work" POCL_CACHE_DIR="$work/cache"

cat >"$work/views.py" <<'PYTHON'
import numpy as np
import pyopencl
from pyopencl import algorithm, array, clmath

context = pyopencl.create_some_context(interactive=False)
queue = pyopencl.CommandQueue(context)
host = np.arange(16, dtype=np.int32)[::-1].copy()
view, right = array.to_device(queue, host)[4:12], host[4:12]
floats = array.to_device(queue, host.astype(np.float32))[4:12]
sort = algorithm.RadixSort(context, "int *ary", "ary[i]", ["ary"], key_dtype=np.int32)

print("pyopencl", pyopencl.VERSION_TEXT)
print("view:", right.tolist())
for name, result, expected in (
    ("sum", array.sum(view), right.sum()),
    ("max", array.max(view), right.max()),
    ("sin", clmath.sin(floats), np.sin(right.astype(np.float32))),
    ("copy", view.copy(), right),
    ("cumsum", array.cumsum(view), right.cumsum()),
    ("copy_if above 7", algorithm.copy_if(view, "ary[i] > 7", queue=queue)[0][:4], right[right > 7]),
    ("partition above 7", algorithm.partition(view, "ary[i] > 7", queue=queue)[0][:4], right[right > 7]),
    ("unique", algorithm.unique(view, queue=queue)[0], right),
    ("RadixSort", sort(view)[0][0], np.sort(right)),
):
    seen = result.get()
    print(f"{name}:", "right" if np.allclose(seen, expected) else f"wrong, {seen.tolist()}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/views.py" | tee "$work/seen"

expected='pyopencl 2026.1.4
view: [11, 10, 9, 8, 7, 6, 5, 4]
sum: right
max: right
sin: right
copy: right
cumsum: wrong, [15, 29, 42, 54, 65, 75, 84, 92]
copy_if above 7: wrong, [15, 14, 13, 12]
partition above 7: wrong, [15, 14, 13, 12]
unique: wrong, [15, 14, 13, 12, 11, 10, 9, 8]
RadixSort: wrong, [8, 9, 10, 11, 12, 13, 14, 15]'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
