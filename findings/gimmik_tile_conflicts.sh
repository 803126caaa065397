#!/usr/bin/env bash
# Guess: GiMMiK's kernels for tensor cores read the tile of B, which TMA brings to shared memory, without bank conflicts:
# its own tensor map can swizzle it.
# What happens: the map has no swizzle, and a row of the tile has 256 or 512 bytes. Four lanes read one column of four
# rows, whose words are in the same banks: 8 passes a load instead of 2. With beta 1, C is stored to such a tile, too,
# with 8 passes a store instead of 4.
# Version: GiMMiK 4.0, ptxas and nvdisasm 13.5.37, sm_90. Seen on 30 November 2026.
# Why it matters: PyFR multiplies with GiMMiK's kernels, and times them to choose one. Those with TMA spend nearly half
# of their shared memory passes for A and B on conflicts: 130 where 70 would do for a matrix of 35 x 20 and 64 columns a
# block.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages gimmik==4.0 mako==1.3.10 markupsafe==3.0.3 numpy==2.3.5 \
  nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37
PATH="$work/packages/nvidia/cu13/bin:$PATH"
echo "GiMMiK 4.0, $(ptxas --version | grep release)"

cat >generate.py <<'PYTHON'
import re
import subprocess
from collections import Counter
import numpy as np
from gimmik import PTXMatMul


def count_passes(addresses, width):
    """Return the passes of a warp's access: lanes of 128 bytes at once, a pass for each word of the fullest bank."""
    passes = 0
    for first in range(0, 32, 128 // width):
        words = {address + byte for address in addresses[first : first + 128 // width] for byte in range(0, width, 4)}
        passes += max(Counter(word // 4 % 32 for word in words).values())
    return passes


for beta in 0.0, 1.0:
    product = PTXMatMul(np.random.default_rng(0).random((35, 20)), beta=beta, aligne=2, n=40000, ldb=40000, ldc=40000)
    for source, meta in product.kernels(np.float64, "product", sigs=product.sigs, compute_capability=(9, 0)):
        if "b_desc" not in meta["operands"]:
            continue
        tile = meta["operands"]["b_desc"]
        # lane's row and column of B, and of C
        for line in "and.b32 base_brow, lane, 3;", "shr.u32 base_crow, lane, 2;", "shl.b32 t, base_brow, 1;":
            assert line in source
        lanes = range(32)
        (pitch,) = set(map(int, re.findall(r"mul\.lo\.u32 b_off, b_row, (\d+);", source)))
        with open("kernel.ptx", "w") as file:
            file.write(source)
        subprocess.run(["ptxas", "-arch=sm_90a", "kernel.ptx", "-o", "kernel.cubin"], check=True)
        code = subprocess.check_output(["nvdisasm", "-c", "kernel.cubin"], text=True)
        of_b, of_a = (len(re.findall(rf"ld\.shared\.f64 {name}_frag", source)) for name in "ba")
        assert len(re.findall(r"\bLDS\.64\b", code)) == of_a + of_b
        passes = count_passes([lane % 4 * pitch + lane // 4 * 8 for lane in lanes], 8)
        line = f"{meta['variant']}, beta {beta:g}, rows of {pitch} bytes, swizzle {tile['swizzle']}: "
        line += f"{of_b} loads of B by {passes} passes, {of_a} of A by 2"
        if beta:
            stores = len(re.findall(r"st\.shared\.v2\.f64", source))
            line += f", {stores} stores of C by {count_passes([lane // 4 * pitch + lane % 4 * 16 for lane in lanes], 16)}"
        print(line)
PYTHON
PYTHONPATH=packages python3 generate.py | tee seen

expected='dmma-stride-ws/nn1-w4-i8, beta 0, rows of 256 bytes, swizzle none: 5 loads of B by 8 passes, 25 of A by 2
dmma-stride-ws/nn2-w4-i2, beta 0, rows of 512 bytes, swizzle none: 10 loads of B by 8 passes, 25 of A by 2
dmma-stride-ws/nn2-w4-i8, beta 0, rows of 512 bytes, swizzle none: 10 loads of B by 8 passes, 25 of A by 2
dmma-stride-ws/nn1-w4-i8, beta 1, rows of 256 bytes, swizzle none: 5 loads of B by 8 passes, 25 of A by 2, 5 stores of C by 8
dmma-stride-ws/nn2-w4-i2, beta 1, rows of 512 bytes, swizzle none: 10 loads of B by 8 passes, 25 of A by 2, 10 stores of C by 8
dmma-stride-ws/nn2-w4-i8, beta 1, rows of 512 bytes, swizzle none: 10 loads of B by 8 passes, 25 of A by 2, 10 stores of C by 8'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
