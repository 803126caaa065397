#!/usr/bin/env bash
# Guess: `wp.utils.array_sum(a[::2])` sums the elements of the view, as array_scan(a[::2]) does, or refuses it, as
# radix_sort_pairs() does. The documentation calls the argument the input array and names no limit of its strides.
# What happens: array_sum() and array_inner() without an axis, and runlength_encode(), read as many elements as the view
# has from its first one on, one after the other. The sum of a column is that of a part of a row. The inner product of a
# matrix and its transpose is that of the matrix and itself. With an axis they take the view's strides.
# Version: Warp (warp-lang) 1.19.0, on the CPU. For a GPU the same lines of Python pass the same stride, that of an
# element. Seen on 30 November 2026.
# Why it matters: sums and residuals are wrong without an error. A profile shows a perfectly coalesced kernel, of the
# sectors that contiguous elements have, where a strided sum should touch more.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" warp-lang==1.19.0 numpy==2.4.6
export PYTHONPATH="$work/packages" WARP_CACHE_PATH="$work/cache"

cat >"$work/views.py" <<'PYTHON'
import inspect

import numpy as np
import warp as wp
from warp import utils

wp.config.quiet = True
host = np.arange(1, 33, dtype=np.float32).reshape(4, 8)
matrix = wp.array(host, device="cpu")
keys = np.repeat(np.arange(1, 9, dtype=np.int32), 2)
every_second = wp.array(keys, device="cpu")[::2]

def scan(view):
    output = wp.zeros(view.shape, dtype=wp.float32, device="cpu")
    utils.array_scan(view, output)
    return output.numpy().tolist()

def encode(view):
    values, lengths = (wp.zeros(view.shape, dtype=wp.int32, device="cpu") for _ in range(2))
    runs = utils.runlength_encode(view, values, lengths)
    return values.numpy()[:runs].tolist()

def sort(view):
    try:
        utils.radix_sort_pairs(view, view, 4)
    except RuntimeError as error:
        return str(error).partition(",")[0]

print("warp", wp.__version__)
for name, seen, right in (
    ("sum of a column", utils.array_sum(matrix[:, 0]), host[:, 0].sum()),
    ("sum of half of the columns", utils.array_sum(matrix[:, :4]), host[:, :4].sum()),
    ("sum of half of the columns, by rows", utils.array_sum(matrix[:, :4], axis=1).numpy().sum(), host[:, :4].sum()),
    ("inner product of columns", utils.array_inner(matrix[:, 0], matrix[:, 1]), host[:, 0] @ host[:, 1]),
    ("inner product with the transpose", utils.array_inner(matrix[:, :4], matrix[:, :4].transpose()),
     (host[:, :4] * host[:, :4].T).sum()),
    ("scan of a column", scan(matrix[:, 0]), host[:, 0].cumsum()),
    ("runs of every second key", encode(every_second), keys[::2]),
):
    print(f"{name}: {seen if isinstance(seen, list) else float(seen)}, right is {right.tolist()}")
print("sort of every second key:", sort(every_second))
source = inspect.getsource(utils.array_sum)
print("stride without an axis, on any device:", source.split("if axis is None:\n        stride = ")[1].split("\n")[0])
PYTHON
python3 "$work/views.py" 2>"$work/messages" | grep -v '^Warp\|^Module\|^ ' | tee "$work/seen"

expected='warp 1.19.0
sum of a column: 10.0, right is 52.0
sum of half of the columns: 136.0, right is 232.0
sum of half of the columns, by rows: 232.0, right is 232.0
inner product of columns: 40.0, right is 1048.0
inner product with the transpose: 1496.0, right is 3684.0
scan of a column: [1.0, 10.0, 27.0, 52.0], right is [1.0, 10.0, 27.0, 52.0]
runs of every second key: [1, 2, 3, 4], right is [1, 2, 3, 4, 5, 6, 7, 8]
sort of every second key: radix_sort_pairs() requires a contiguous keys array
stride without an axis, on any device: wp._src.types.type_size_in_bytes(values.dtype)'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
