#!/usr/bin/env bash
# Guess: the first matrix product of Numba's documentation, without shared memory, accesses neighbours in a warp.
# The documentation calls it slow because elements are loaded several times.
# What happens: `i, j = cuda.grid(2)` is x, y, and the elements are A[i, k] and C[i, j]: lanes are in 16 rows, or 32. A
# load of A and the store of C touch as many sectors. As `j, i = cuda.grid(2)` they touch 2 and 4, or 1 and 4. The
# version with shared memory, next on the page, has that order.
# Version: numba-cuda 0.30.4, the example that it ships in doc_examples/test_matmul.py; matrices of float32.
# Why it matters: a comparison of the two examples shows coalescing, and not shared memory alone. Whoever copies the
# naming of rows and columns copies 8 times the sectors of a store.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" numba-cuda==0.30.4

cat >"$work/count_sectors.py" <<'PYTHON'
import re
import sys
from pathlib import Path

(path,) = Path(sys.argv[1]).rglob("doc_examples/test_matmul.py")
kernel = re.search(r"def matmul\(A, B, C\):.*?C\[i, j\] = tmp", path.read_text(), re.DOTALL)[0]
ROW = 1024  # elements

def count_sectors(index, names, width):
    """Count the 32-byte sectors that the first warp of a block of `width` times `width` threads touches, at k = 0."""
    lanes = [dict(zip(names, (lane % width, lane // width)), k=0) for lane in range(32)]
    places = [eval(index, {}, lane) for lane in lanes]
    return len({(row * ROW + column) * 4 // 32 for row, column in places})

print(re.search(r"i, j = .*", kernel)[0])
accesses = re.findall(r"([ABC])\[(\w, \w)\]", kernel)
for names in "ij", "ji":
    for width in 16, 32:
        counts = (f"{array}[{index}] {count_sectors(index, names, width)}" for array, index in accesses)
        print(f"x, y are {', '.join(names)}; {width} x {width} threads; sectors:", *counts)
PYTHON
python3 "$work/count_sectors.py" "$work/packages" | tee "$work/seen"

expected='i, j = cuda.grid(2)
x, y are i, j; 16 x 16 threads; sectors: A[i, k] 16 B[k, j] 1 C[i, j] 16
x, y are i, j; 32 x 32 threads; sectors: A[i, k] 32 B[k, j] 1 C[i, j] 32
x, y are j, i; 16 x 16 threads; sectors: A[i, k] 2 B[k, j] 2 C[i, j] 4
x, y are j, i; 32 x 32 threads; sectors: A[i, k] 1 B[k, j] 4 C[i, j] 4'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
