#!/usr/bin/env bash
# Guess: IREE reads the rows of an embedding, 256 contiguous float32 each, with 16 bytes a thread, as it stores them.
# What happens: a thread stores its four elements at once, and loads them one by one. The lanes of a load lie 16 bytes
# apart: it touches 16 sectors for 128 bytes.
# Version: iree-base-compiler 3.13.0, its CUDA target for sm_80, which needs no GPU.
# Why it matters: a look-up of rows makes 4 times the requests, and asks 4 times for each sector.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" iree-base-compiler==3.13.0 numpy==2.4.6
export PYTHONPATH="$work/packages"

cat >"$work/rows.py" <<'PYTHON'
import re
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from iree import compiler

GATHER = """
#row = affine_map<(i, j) -> (i)>
#element = affine_map<(i, j) -> (i, j)>
func.func @gather(%table: tensor<10000x256xf32>, %rows: tensor<4096xi32>) -> tensor<4096x256xf32> {
  %empty = tensor.empty() : tensor<4096x256xf32>
  %result = linalg.generic {indexing_maps = [#row, #element], iterator_types = ["parallel", "parallel"]}
      ins(%rows: tensor<4096xi32>) outs(%empty: tensor<4096x256xf32>) {
  ^bb0(%row: i32, %old: f32):
    %i = arith.index_cast %row : i32 to index
    %j = linalg.index 1 : index
    %value = tensor.extract %table[%i, %j] : tensor<10000x256xf32>
    linalg.yield %value : f32
  } -> tensor<4096x256xf32>
  return %result : tensor<4096x256xf32>
}
"""
OPERATIONS = {"mov": int, "cvt": int, "add": int.__add__, "mul": int.__mul__, "shl": int.__lshift__}
OPERATIONS |= {"shr": int.__rshift__, "and": int.__and__, "or": int.__or__, "xor": int.__xor__}

def find_addresses(ptx, lane):
    """Compute the addresses that a thread of block 0 loads, in the first turn of the loop, if there is one."""
    values, addresses = {"%tid.x": lane, "%ctaid.x": 0}, []
    for name, kind, text in re.findall(r"^\t(\w+)\.(\S+)\s+(.*);", ptx, re.MULTILINE):
        target, *operands = re.findall(r"[%\w.+-]+", text)
        if name == "ld" and kind.startswith("param"):
            values[target] = int(operands[0][-1]) << 40
        elif name == "ld" and kind.startswith("global"):
            base, _, offset = operands[-1].partition("+")
            addresses.append(values[base] + int(offset or 0))
        elif name in OPERATIONS and re.match("((lo|wide)[.])?[bsu](32|64)", kind) and "0f" not in text:
            numbers = (int(x) if x.lstrip("-").isdigit() else values.get(x, 0) for x in operands)
            values[target] = OPERATIONS[name](*numbers)
    return addresses

def compile_kernel(source):
    """Compile for sm_80; return the kernel's PTX."""
    folder = Path(tempfile.mkdtemp(dir=sys.argv[1]))
    target = ["--iree-hal-target-device=cuda", "--iree-cuda-target=sm_80"]
    compiler.compile_str(source, extra_args=[*target, f"--iree-hal-dump-executable-files-to={folder}"])
    return next(folder.glob("*.ptx")).read_text()

print("iree-base-compiler", version("iree-base-compiler"))
ptx = compile_kernel(GATHER)
print(*re.findall(r"(?:ld|st)\.global\S+", ptx))
print("bytes between lanes:", *(b - a for a, b in zip(find_addresses(ptx, 0), find_addresses(ptx, 1))))
PYTHON
python3 "$work/rows.py" "$work" | tee "$work/seen"

expected='iree-base-compiler 3.13.0
ld.global.nc.b32 ld.global.b32 ld.global.b32 ld.global.b32 ld.global.b32 st.global.v4.b32
bytes between lanes: 0 16 16 16 16'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
