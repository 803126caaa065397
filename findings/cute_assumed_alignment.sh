#!/usr/bin/env bash
# Guess, written after the first sign: where a thread of CuTe DSL loads four neighbouring floats of a tensor that came by DLPack, it does so with one
# access of 16 bytes: the layout is static, and the array's address is a multiple of 16.
# What happens: four accesses of 4 bytes. The lanes of each lie 16 bytes apart, so a request touches 16 sectors for the
# bytes of 4. from_dlpack() takes an array to be aligned to its element, whatever its address is. With assumed_align=16
# it is one access of 16 bytes.
# Version: CuTe DSL (nvidia-cutlass-dsl) 4.8.1, a target of sm_90, which needs no GPU.
# Why it matters: layouts of threads and values that are written for 128-bit accesses compile to the worst coalescing
# that they could have, without a warning, unless each tensor names its alignment.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check nvidia-cutlass-dsl==4.8.1 numpy==2.4.6

cat >"$work/double_kernel.py" <<'PYTHON'
import re
import sys
from importlib.metadata import version

import cutlass.cute as cute
import numpy as np
from cutlass.cute.runtime import from_dlpack

@cute.kernel
def double(source: cute.Tensor, output: cute.Tensor, layout: cute.Layout):
    thread, tile = cute.arch.thread_idx()[0], ((None, None), cute.arch.block_idx()[0])
    values = cute.composition(source[tile], layout)[thread, None].load()
    cute.composition(output[tile], layout)[thread, None] = 2 * values

@cute.jit
def launch(source: cute.Tensor, output: cute.Tensor):
    threads, values = cute.make_layout((4, 32), stride=(32, 1)), cute.make_layout((1, 4), stride=(4, 1))
    tiler, layout = cute.make_layout_tv(threads, values)
    tiles = [cute.zipped_divide(tensor, tiler) for tensor in (source, output)]
    double(*tiles, layout).launch(grid=(16, 1, 1), block=(128, 1, 1))

def describe_accesses(**alignment):
    """Compile for arrays whose addresses are multiples of 16; return the accesses to global memory."""
    whole = np.zeros(64 * 128 + 4, np.float32)
    first = -whole.ctypes.data % 16 // 4
    tensor = from_dlpack(whole[first : first + 64 * 128].reshape(64, 128), **alignment)
    options = f"--gpu-arch sm_90 --keep-ptx --dump-dir={sys.argv[1]}"
    ptx = cute.compile(launch, tensor, tensor, options=options).__ptx__
    accesses = re.findall(r"\b(?:ld|st)\.global\S*", ptx)
    return ", ".join(f"{accesses.count(name)} {name}" for name in dict.fromkeys(accesses))

print("nvidia-cutlass-dsl", version("nvidia-cutlass-dsl"))
print("from_dlpack(x):", describe_accesses())
print("from_dlpack(x, assumed_align=16):", describe_accesses(assumed_align=16))
PYTHON
"$work/venv/bin/python" -W ignore "$work/double_kernel.py" "$work" | tee "$work/seen"

expected='nvidia-cutlass-dsl 4.8.1
from_dlpack(x): 4 ld.global.b32, 4 st.global.b32
from_dlpack(x, assumed_align=16): 1 ld.global.v4.b32, 1 st.global.v4.b32'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
