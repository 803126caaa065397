#!/usr/bin/env bash
# Guess: `T.cumsum(tile, dim=0)` of a tile in shared memory reads it without bank conflicts, as `dim=1` does: a warp needs
# one pass for 32 floats.
# What happens: with dim=1 the lanes take neighbours. With dim=0 they take 32 rows of a column. In a tile of 64 columns
# all lanes are in one bank: 32 passes a load, and 32 a store. Of 33 columns it is 1 pass.
# Version: TileLang 0.1.15, nvcc 13.5.37, sm_80, which needs no GPU. Seen on 30 November 2026.
# Why it matters: dim=0 is the default. A sum down the columns takes 32 times the passes. Widths are powers of two, and
# TileLang swizzles them elsewhere.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Without its dependency PyTorch, of which the compiler asks only for names of types.
python3 -m pip install -qq --no-deps --target "$work/packages" tilelang==0.1.15 \
  apache-tvm-ffi==0.1.12 z3-solver==4.15.4.0 cloudpickle==3.1.3 ml-dtypes==0.6.0 \
  numpy==2.4.6 psutil==7.2.2 tqdm==4.70.1 typing-extensions==4.16.0 \
  nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 \
  nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
export PYTHONPATH="$work/packages" PATH="$work/packages/nvidia/cu13/bin:$PATH"
nvcc --version | grep release

mkdir "$work/torch"
cat >"$work/torch/__init__.py" <<'PYTHON'
import sys
from types import ModuleType

class Stub(ModuleType):
    """A module whose names are empty classes."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, type(name, (), {}))
        return self.__dict__[name]

__version__ = "2.9.0"
sys.modules["torch"].__class__ = Stub
for name in ("cuda", "version", "nn", "utils", "utils.cpp_extension"):
    sys.modules[f"torch.{name}"] = Stub(f"torch.{name}")
    parent, _, child = f"torch.{name}".rpartition(".")
    setattr(sys.modules[parent], child, sys.modules[f"torch.{name}"])
cuda.is_available = lambda: False
PYTHON
cat >"$work/sums.py" <<'PYTHON'
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import tilelang
import tilelang.language as T
from tvm.target import Target

work = Path(sys.argv[1])
FOLDERS = "tilelang/src", "tilelang/3rdparty/cutlass/include", "nvidia/cu13/include/cccl"
OPTIONS = ["-w", "-ptx", "-arch=sm_80", "-std=c++17", *(f"-I{work}/packages/{folder}" for folder in FOLDERS)]
OPERATIONS = {"mov": int, "add": int.__add__, "shl": int.__lshift__, "shr": int.__rshift__, "and": int.__and__}
OPERATIONS |= {"or": int.__or__, "mul": int.__mul__, "mad": lambda a, b, c: a * b + c}

def make_sum(dim, columns):
    """Make a kernel of one block, which sums a tile of 64 rows in shared memory."""

    @T.prim_func
    def kernel(source: T.Tensor((64, columns), "float32"), output: T.Tensor((64, columns), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((64, columns), "float32")
            T.copy(source, tile)
            T.cumsum(tile, dim=dim)
            T.copy(tile, output)

    return kernel

def find_address(ptx, lane):
    """Compute the byte of shared memory that a lane's first scalar load reads."""
    values = {"%tid.x": lane}
    for name, kind, text in re.findall(r"^\t(\w+)\.(\S+)\s+(.*);", ptx, re.MULTILINE):
        target, *operands = re.findall(r"[%\w.+-]+", text)
        if name == "ld" and kind == "shared.f32":
            base, _, offset = operands[0].partition("+")
            return values[base] + int(offset or 0)
        if name in OPERATIONS and kind in ("b32", "u32", "s32", "lo.s32"):
            values[target] = OPERATIONS[name](*(int(x) if x.lstrip("-").isdigit() else values.get(x, 0) for x in operands))

def count_passes(dim, columns):
    """Compile for sm_80; count the words in the bank that has most, of the first warp."""
    with Target({"kind": "cuda", "arch": "sm_80"}) as target:
        source = tilelang.lower(make_sum(dim, columns), target=target, enable_device_compile=False).kernel_source
    (work / "kernel.cu").write_text(source)
    subprocess.run(["nvcc", *OPTIONS, work / "kernel.cu", "-o", work / "kernel.ptx"], check=True)
    ptx = (work / "kernel.ptx").read_text()
    words = {find_address(ptx, lane) // 4 for lane in range(32)}
    return max(Counter(word % 32 for word in words).values())

print("tilelang", tilelang.__version__)
for dim, columns in (1, 64), (0, 64), (0, 128), (0, 33):
    print(f"dim={dim}, 64 x {columns}: {count_passes(dim, columns)} passes")
PYTHON
PYTHONPATH="$work:$PYTHONPATH" python3 -W ignore "$work/sums.py" "$work" 2>"$work/messages" |
  sed -n '/^tilelang/,$p' | tee "$work/seen"

expected='tilelang 0.1.15
dim=1, 64 x 64: 1 passes
dim=0, 64 x 64: 32 passes
dim=0, 64 x 128: 32 passes
dim=0, 64 x 33: 1 passes'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
