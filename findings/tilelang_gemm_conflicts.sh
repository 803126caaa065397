#!/usr/bin/env bash
# Guess: T.gemm reads its tiles from shared memory without bank conflicts, since it swizzles them: 2
# passes for a load of 8 bytes a lane, and 1 for narrower ones.
# What happens: what ldmatrix reads has none: float16, and rows of int8 or float32 that run along
# the sum. A right factor as it is mostly stored, with rows along the result, is read in 2 passes of
# 4 bytes for float32, and of single bytes for int8. Each load of float64 takes 8 passes.
# Version: TileLang 0.1.15, nvcc and nvdisasm 13.5.37, sm_80, which needs no GPU.
# Why it matters: a product of float64 takes four times the passes that its bytes need, though its
# tiles are swizzled. For int8, a transposed right factor turns 16 loads of a byte into one
# ldmatrix.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Without its dependency PyTorch, of which the compiler asks only for names of types.
python3 -m pip install -qq --no-deps --target "$work/packages" tilelang==0.1.15 \
  apache-tvm-ffi==0.1.12 z3-solver==4.15.4.0 cloudpickle==3.1.3 ml-dtypes==0.6.0 \
  numpy==2.4.6 psutil==7.2.2 tqdm==4.70.1 typing-extensions==4.16.0 \
  nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 \
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
cat >"$work/products.py" <<'PYTHON'
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import tilelang
import tilelang.language as T
from tvm.target import Target

work = Path(sys.argv[1])
FOLDERS = "tilelang/src", "tilelang/3rdparty/cutlass/include", "nvidia/cu13/include/cccl"
OPTIONS = ["-w", "-cubin", "-arch=sm_80", "-std=c++17", *(f"-I{work}/packages/{folder}" for folder in FOLDERS)]
BYTES = {"signed char": 1, "float": 4, "double": 8}

def make_product(dtype, sum_dtype, depth, transposed):
    """Make a kernel of 1024 x 1024 matrices; transposed, the rows of the right one run along the sum."""

    @T.prim_func
    def kernel(
        left: T.Tensor((1024, 1024), dtype),
        right: T.Tensor((1024, 1024), dtype),
        output: T.Tensor((1024, 1024), sum_dtype),
    ):
        with T.Kernel(8, 8, threads=128) as (column, row):
            left_tile = T.alloc_shared((128, depth), dtype)
            right_tile = T.alloc_shared((128, depth) if transposed else (depth, 128), dtype)
            sums = T.alloc_fragment((128, 128), sum_dtype)
            T.clear(sums)
            for k in T.Pipelined(1024 // depth, num_stages=2):
                T.copy(left[row * 128, k * depth], left_tile)
                if transposed:
                    T.copy(right[column * 128, k * depth], right_tile)
                else:
                    T.copy(right[k * depth, column * 128], right_tile)
                T.gemm(left_tile, right_tile, sums, transpose_B=transposed)
            T.copy(sums, output[row * 128, column * 128])

    return kernel

def count_passes(index, size):
    """Count a load's passes: the words in the bank that has most, for 8 bytes in each half of the warp."""
    passes = 0
    for lanes in (range(32),) if size <= 4 else (range(16), range(16, 32)):
        words = defaultdict(set)
        for lane in lanes:
            expression = index.replace("((int)threadIdx.x)", str(lane)).replace("/", "//")
            first = eval(expression, {}, defaultdict(int)) * size  # the first of each loop: all others are 0
            for word in range(first // 4, (first + size + 3) // 4):
                words[word % 32].add(word)
        passes += max(map(len, words.values()))
    return passes

def describe_reads(*product):
    """Compile for sm_80; return the kinds of shared loads, and the passes of those that the CUDA C++ writes out."""
    with Target({"kind": "cuda", "arch": "sm_80"}) as target:
        source = tilelang.lower(make_product(*product), target=target, enable_device_compile=False).kernel_source
    (work / "kernel.cu").write_text(source)
    subprocess.run(["nvcc", *OPTIONS, work / "kernel.cu", "-o", work / "kernel.cubin"], check=True)
    command = ["nvdisasm", "-c", work / "kernel.cubin"]
    code = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    reads = re.findall(r"_local\w*\[.*\] = \(\((.*)\*\)(\w+)\)\[(.*)\];", source)
    passes = {f"{count_passes(index, BYTES[dtype])} passes for {tile}" for dtype, tile, index in reads}
    loads = set(re.findall(r"\b(LDSM?\S*) R\d", code))  # without LDS RZ, which ptxas adds to cp.async
    return ", ".join(sorted(loads) + sorted(passes))

print("tilelang", tilelang.__version__)
DTYPES = {"float16": ("float32", 32), "int8": ("int32", 64), "float32": ("float32", 32), "float64": ("float64", 16)}
for dtype, (sum_dtype, depth) in DTYPES.items():
    for transposed in (True, False):
        label = "transposed" if transposed else "as it is"
        print(f"{dtype}, {label}:", describe_reads(dtype, sum_dtype, depth, transposed))
PYTHON
PYTHONPATH="$work:$PYTHONPATH" python3 -W ignore "$work/products.py" "$work" 2>"$work/messages" |
  sed -n '/^tilelang/,$p' | tee "$work/seen"

expected='tilelang 0.1.15
float16, transposed: LDSM.16.M88.4
float16, as it is: LDSM.16.M88.4, LDSM.16.MT88.4
int8, transposed: LDSM.16.M88.4
int8, as it is: LDS.U8, LDSM.16.M88.4, 2 passes for right_tile
float32, transposed: LDSM.16.M88.4
float32, as it is: LDS, LDSM.16.M88.4, 2 passes for right_tile
float64, transposed: LDS.64, 8 passes for left_tile, 8 passes for right_tile
float64, as it is: LDS.64, 8 passes for left_tile, 8 passes for right_tile'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
