#!/usr/bin/env bash
# Guess: IREE sums the rows of a row-major float32 matrix alike for 1024 and for 1000 columns: the lanes of a warp read
# neighbours of a row.
# What happens: for 1024 columns they do. For 1000 columns a thread sums four rows alone, and the lanes lie 16,000 bytes
# apart: a load touches 32 sectors, and half of each. For 1001 columns and 1000 rows a thread sums one row, by single
# elements: 32 sectors for 128 bytes.
# Version: iree-base-compiler 3.13.0, its CUDA target for sm_80, which needs no GPU.
# Why it matters: 1000 classes or a vocabulary of an odd size are common. A benchmark at powers of two shows another
# kernel. Four rows a thread are 256 threads for 1024 rows: 8 warps on the whole GPU.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" iree-base-compiler==3.13.0 numpy==2.4.6
export PYTHONPATH="$work/packages"

cat >"$work/sums.py" <<'PYTHON'
import re
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from iree import compiler

SOURCE = """
func.func @sum(%matrix: tensor<ROWSxCOLUMNSxf32>) -> tensor<ROWSxf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<ROWSxf32>
  %start = linalg.fill ins(%zero: f32) outs(%empty: tensor<ROWSxf32>) -> tensor<ROWSxf32>
  %sums = linalg.reduce {arith.addf}
      ins(%matrix: tensor<ROWSxCOLUMNSxf32>) outs(%start: tensor<ROWSxf32>) dimensions = [1]
  return %sums : tensor<ROWSxf32>
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
for rows, columns in (1024, 1024), (1024, 1000), (1000, 1001):
    ptx = compile_kernel(SOURCE.replace("ROWS", str(rows)).replace("COLUMNS", str(columns)))
    first = [find_addresses(ptx, lane)[0] for lane in range(32)]
    load, width = re.search(r"ld\.global\S+", ptx)[0], 4 if ".v4" in ptx else 1
    sectors = {(address + 4 * i) // 32 for address in first for i in range(width)}
    apart = first[1] - first[0]
    print(f"{rows} x {columns}: {load}, lanes {apart} bytes apart, {len(sectors)} sectors for {128 * width} bytes")
PYTHON
python3 "$work/sums.py" "$work" | tee "$work/seen"

expected='iree-base-compiler 3.13.0
1024 x 1024: ld.global.nc.v4.b32, lanes 16 bytes apart, 16 sectors for 512 bytes
1024 x 1000: ld.global.nc.v4.b32, lanes 16000 bytes apart, 32 sectors for 512 bytes
1000 x 1001: ld.global.nc.b32, lanes 4004 bytes apart, 32 sectors for 128 bytes'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
