#!/usr/bin/env bash
# Guess: the lanes of a warp read neighbours in memory with GT4Py's backend dace:gpu, "with an optimal KJI loop layout":
# its arrays have unit stride along I.
# What happens: in a PARALLEL stencil threadIdx.x runs over K, whose stride is the largest: the elements of two
# neighbouring lanes lie a whole plane apart. In a FORWARD stencil, whose K is a loop, threadIdx.x runs over I. In
# dace:gpu_IJK, whose unit stride is along K, threadIdx.x runs over J in both.
# Version: GT4Py 1.1.12 with DaCe 2.0.0b1, whose generated CUDA C++ is read. Seen on 30 November 2026.
# Why it matters: a load of float32 touches 32 sectors instead of 4 or 5. PARALLEL is the usual kind of stencil, and the
# layouts are those that gt4py.storage gives an array for the backend.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check gt4py==1.1.12 dace==2.0.0b1 \
  gridtools-cpp==2.3.9 numpy==2.4.6
export HOME="$work" GT4PY_CACHE_ROOT="$work"
cd "$work"

cat >"$work/lanes.py" <<'PYTHON'
import re
from importlib.metadata import version

import numpy as np
from gt4py.cartesian.gtscript import FORWARD, PARALLEL, Field, computation, interval
from gt4py.cartesian.stencil_builder import StencilBuilder

SHAPE = (130, 130, 80)

def laplacian(source: Field[np.float32], output: Field[np.float32]):
    with computation(PARALLEL), interval(...):
        output = source[1, 0, 0] + source[-1, 0, 0] + source[0, 1, 0] + source[0, -1, 0] - 4 * source

def copy(source: Field[np.float32], output: Field[np.float32]):
    with computation(PARALLEL), interval(...):
        output = source

def running_sums(source: Field[np.float32], output: Field[np.float32]):
    with computation(FORWARD), interval(1, None):
        output = source + output[0, 0, -1]

def find_strides(layout):
    """Return each axis's stride in bytes; the axis with the highest number in the layout has neighbours."""
    strides, stride = {}, 4
    for place in reversed(range(3)):
        axis = layout.index(place)
        strides["IJK"[axis]] = stride
        stride *= SHAPE[axis]
    return strides

print("gt4py", version("gt4py"), "dace", version("dace"))
for backend in "dace:gpu", "dace:gpu_IJK":
    for definition in laplacian, copy, running_sums:
        builder = StencilBuilder(definition, backend=backend)
        builder.options.name = definition.__name__
        strides = find_strides(builder.backend.storage_info["layout_map"](("I", "J", "K")))
        code = builder.backend._make_extension_sources()["computation"]["computation.hpp"]
        (lane,) = re.findall(r"int __([ijk])\w* = .*threadIdx\.x", code)
        (index,) = set(re.findall(r"output\[(.*)\] = ", code))
        assert all(f"__{axis.lower()}" in index and f"__output_{axis}_stride" in index for axis in "IJK")
        stride = strides[lane.upper()]
        text = ", ".join(f"{axis} {size}" for axis, size in strides.items())
        print(f"{backend} {definition.__name__}: strides {text}; lanes along {lane.upper()}, {stride} bytes apart:",
              len({stride * i // 32 for i in range(32)}), "sectors a load")
PYTHON
"$work/venv/bin/python" -W ignore "$work/lanes.py" 2>"$work/messages" | tee "$work/seen"

expected='gt4py 1.1.12 dace 2.0.0b1
dace:gpu laplacian: strides I 4, J 520, K 67600; lanes along K, 67600 bytes apart: 32 sectors a load
dace:gpu copy: strides I 4, J 520, K 67600; lanes along K, 67600 bytes apart: 32 sectors a load
dace:gpu running_sums: strides I 4, J 520, K 67600; lanes along I, 4 bytes apart: 4 sectors a load
dace:gpu_IJK laplacian: strides K 4, J 320, I 41600; lanes along J, 320 bytes apart: 32 sectors a load
dace:gpu_IJK copy: strides K 4, J 320, I 41600; lanes along J, 320 bytes apart: 32 sectors a load
dace:gpu_IJK running_sums: strides K 4, J 320, I 41600; lanes along J, 320 bytes apart: 32 sectors a load'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
