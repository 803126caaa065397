#!/usr/bin/env bash
# Guess: IREE multiplies float16 matrices of 1000 x 1000 as those of 1024 x 1024: it copies 16 bytes a thread to shared
# memory. 1000 and 1016 are divisible by 8, so each 16 bytes of a row are aligned.
# What happens: a thread loads its 8 neighbours by 8 loads of 2 bytes, each behind a branch of its own: 8 times the
# requests an element. Results pass through local memory. At 1008 and 1040 one of the factors is copied so.
# Version: iree-base-compiler 3.13.0, its CUDA target for sm_80, which needs no GPU.
# Why it matters: a benchmark at multiples of 128 shows another kernel than 1000 classes run. Accesses of local memory
# look like spills, of which ptxas reports none.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" iree-base-compiler==3.13.0 numpy==2.4.6
export PYTHONPATH="$work/packages"

cat >"$work/products.py" <<'PYTHON'
import re
import sys
import tempfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from iree import compiler

SOURCE = """
func.func @product(%left: tensor<NxNxf16>, %right: tensor<NxNxf16>) -> tensor<NxNxf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<NxNxf32>
  %start = linalg.fill ins(%zero: f32) outs(%empty: tensor<NxNxf32>) -> tensor<NxNxf32>
  %product = linalg.matmul ins(%left, %right: tensor<NxNxf16>, tensor<NxNxf16>)
      outs(%start: tensor<NxNxf32>) -> tensor<NxNxf32>
  return %product : tensor<NxNxf32>
}
"""

def compile_kernel(source):
    """Compile for sm_80; return the kernel's PTX."""
    folder = Path(tempfile.mkdtemp(dir=sys.argv[1]))
    target = ["--iree-hal-target-device=cuda", "--iree-cuda-target=sm_80"]
    compiler.compile_str(source, extra_args=[*target, f"--iree-hal-dump-executable-files-to={folder}"])
    return next(folder.glob("*.ptx")).read_text()

print("iree-base-compiler", version("iree-base-compiler"))
for size in 1024, 1000, 1008, 1016, 1040:
    ptx = compile_kernel(SOURCE.replace("NxN", f"{size}x{size}"))
    accesses = Counter(re.findall(r"\b(?:ld\.global\S+|(?:ld|st)\.local\S+|mma)", ptx))
    print(f"{size}:", ", ".join(f"{count} {name}" for name, count in sorted(accesses.items())))
PYTHON
python3 "$work/products.py" "$work" | tee "$work/seen"

expected='iree-base-compiler 3.13.0
1024: 16 ld.global.nc.v4.b32, 64 mma
1000: 16 ld.global.nc.b16, 8 ld.local.v2.b32, 8 mma, 16 st.local.v2.b32
1008: 8 ld.global.nc.b16, 1 ld.global.nc.v4.b32, 8 ld.local.v2.b32, 8 mma, 16 st.local.v2.b32
1016: 128 ld.global.nc.b16, 8 ld.local.v2.b32, 64 mma, 16 st.local.v2.b32
1040: 8 ld.global.nc.b16, 1 ld.global.nc.v4.b32, 8 ld.local.v2.b32, 8 mma, 16 st.local.v2.b32'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
