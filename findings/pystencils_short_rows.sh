#!/usr/bin/env bash
# Guess: a warp of a pystencils kernel reads 32 neighbours of a row, whichever the number of dimensions.
# What happens: blocks are of 16 x 16 threads in 2D and of 8 x 8 x 4 in 3D by default. A warp reads two rows of 16
# elements, or four of 8. Beside a ghost layer each row begins one element late: of float32 a load touches 6 or 8
# sectors, of which 5 would do.
# Version: pystencils 2.0, CUDA, without a GPU.
# Why it matters: a load in 3D asks for 60 % more sectors than with `default_block_size = (32, 8, 1)`. Yet threadIdx.x
# runs over neighbours, as it should.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check pystencils==2.0 numpy==2.4.6

cat >"$work/blocks.py" <<'PYTHON'
import itertools

import numpy as np
import pystencils as ps

def describe(shape, **options):
    """Compile a sum of two neighbours; return its block and the sectors of the first warp's load of the own element."""
    source, output = (ps.Field.create_from_numpy_array(name, np.zeros(shape, np.float32)) for name in ("source", "output"))
    ones, zeros = [0] * (len(shape) - 1) + [1], [0] * len(shape)
    config = ps.CreateKernelConfig(target=ps.Target.CUDA)
    for name, value in options.items():
        setattr(config.gpu, name, value)
    kernel = ps.create_kernel(ps.Assignment(output.center(), source[tuple(zeros)] + source[tuple(ones)]), config)
    assert f"ctr_{len(shape) - 1} = 1LL + ((int64_t) blockIdx.x" in kernel.get_c_code()
    block, _ = kernel.get_launch_configuration().evaluate()
    warp = itertools.islice(itertools.product(*(range(threads) for threads in reversed(block))), 32)
    cells = (tuple(1 + thread for thread in threads[3 - len(shape) :]) for threads in warp)
    # The array begins at a multiple of 32 bytes, as one of cudaMalloc() does.
    sectors = {4 * int(np.ravel_multi_index(cell, shape)) // 32 for cell in cells}
    return f"block {block}, {len(sectors)} sectors"

print("pystencils", ps.__version__)
for shape in [(1024,), (256, 256), (64, 64, 64)]:
    print(f"{len(shape)}D:", describe(shape))
print("3D, told:", describe((64, 64, 64), default_block_size=(32, 8, 1)))
PYTHON
"$work/venv/bin/python" "$work/blocks.py" | tee "$work/seen"

expected='pystencils 2.0
1D: block (256, 1, 1), 5 sectors
2D: block (16, 16, 1), 6 sectors
3D: block (8, 8, 4), 8 sectors
3D, told: block (32, 8, 1), 5 sectors'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
