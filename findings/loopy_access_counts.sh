#!/usr/bin/env bash
# Guess: get_mem_access_map() counts the loads that a kernel's work-items execute, without redundant ones, as the flag
# count_redundant_work=False says; or once a sub-group if all its work-items load one element.
# What happens: work-items that the guard of a row's end masks are counted, 256 for a row of 129, but not if the row
# is shorter than a work-group. An element that is the same along axis 0 of a work-group counts once a sub-group,
# whatever the axis's length. In groups of 4 x 64 a sub-group of 32 loads 8 elements, and counts one.
# Version: loopy 2025.2 with islpy 2025.2.5, which need no GPU. Seen on 30 November 2026.
# Why it matters: models of time and roofline plots take bytes from these numbers. Groups of 32 x 8 load an eighth of
# what groups of 4 x 64 load here, and both have one count: a tuner that trusts it sees no difference.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check loopy==2025.2 islpy==2025.2.5 numpy==2.4.6

cat >"$work/counts.py" <<'PYTHON'
from importlib.metadata import version

import loopy as lp
import numpy as np

def make_kernel(value, width, height):
    """Make a kernel over rows i and columns j, with work-groups of `width` columns and `height` rows."""
    matrix = [lp.GlobalArg(name, np.float32, shape="rows, columns") for name in ("source", "output")]
    kernel = lp.make_kernel(
        "{[i, j]: 0 <= i < rows and 0 <= j < columns}", f"output[i, j] = {value}",
        [*matrix, lp.GlobalArg("factors", np.float32, shape="rows"), "..."],
        target=lp.CudaTarget(), assumptions="rows >= 1 and columns >= 1",
    )
    kernel = lp.split_iname(kernel, "j", width, outer_tag="g.0", inner_tag="l.0")
    return lp.split_iname(kernel, "i", height, outer_tag="g.1", inner_tag="l.1")

def count_truly(rows, columns, width, height, of_row):
    """Count the elements that the sub-groups load: one a work-item, or the distinct ones if they are the row's."""
    total = 0
    for group_row in range(0, rows, height):
        for group_column in range(0, columns, width):
            items = [(group_row + n // width, group_column + n % width) for n in range(width * height)]
            for first in range(0, len(items), 32):
                active = [(i, j) for i, j in items[first : first + 32] if i < rows and j < columns]
                total += len({i for i, _ in active}) if of_row else len(active)
    return total

print("loopy", version("loopy"), "islpy", version("islpy"))
for value, rows, columns, width, height in (
    ("source[i, j] + 1", 1024, 1024, 128, 1),
    ("source[i, j] + 1", 1024, 129, 128, 1),
    ("source[i, j] + 1", 1024, 100, 128, 1),
    ("factors[i]", 1024, 32, 32, 8),
    ("factors[i]", 1024, 32, 4, 64),
):
    accesses = lp.get_mem_access_map(make_kernel(value, width, height), count_redundant_work=False, subgroup_size=32)
    counted = accesses.filter_by(direction=["load"]).eval_and_sum({"rows": rows, "columns": columns})
    right = count_truly(rows, columns, width, height, value == "factors[i]")
    print(f"{value}, {rows} x {columns}, groups of {width} x {height}: {counted} counted, {right} loaded")
PYTHON
"$work/venv/bin/python" -W ignore "$work/counts.py" | tee "$work/seen"

expected='loopy 2025.2 islpy 2025.2.5
source[i, j] + 1, 1024 x 1024, groups of 128 x 1: 1048576 counted, 1048576 loaded
source[i, j] + 1, 1024 x 129, groups of 128 x 1: 262144 counted, 132096 loaded
source[i, j] + 1, 1024 x 100, groups of 128 x 1: 102400 counted, 102400 loaded
factors[i], 1024 x 32, groups of 32 x 8: 1024 counted, 1024 loaded
factors[i], 1024 x 32, groups of 4 x 64: 1024 counted, 8192 loaded'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
