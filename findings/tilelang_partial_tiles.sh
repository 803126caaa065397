#!/usr/bin/env bash
# Guess: where a tile goes past the end of an array, T.Parallel reads it as T.copy does: with 16
# bytes a thread if the length is divisible by 4, and else with 4 bytes, neighbouring threads
# reading neighbours.
# What happens: T.copy does. T.Parallel stays with four neighbours a thread, and reads them one by
# one, 16 bytes apart from the next thread's. So it is for each length that is not known, or not
# divisible by 4.
# Version: TileLang 0.1.15, nvcc and nvdisasm 13.5.37, sm_90, which needs no GPU.
# Why it matters: a load of a warp touches 16 sectors for the bytes of 4, in each tile, not just in
# the last. Written with T.copy, the same kernel coalesces.
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
cat >"$work/copy_kernels.py" <<'PYTHON'
import re
import subprocess
import sys
from pathlib import Path

import tilelang
import tilelang.language as T
from tvm.target import Target

work = Path(sys.argv[1])
FOLDERS = "tilelang/src", "tilelang/3rdparty/cutlass/include", "nvidia/cu13/include/cccl"
OPTIONS = ["-w", "-cubin", "-arch=sm_90", "-std=c++17", *(f"-I{work}/packages/{folder}" for folder in FOLDERS)]

def make_copy(n):
    @T.prim_func
    def kernel(source: T.Tensor((n,), "float32"), output: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 1024), threads=128) as block:
            tile = T.alloc_fragment((1024,), "float32")
            T.copy(source[block * 1024], tile)
            T.copy(tile, output[block * 1024])

    return kernel

def make_parallel(n):
    @T.prim_func
    def kernel(source: T.Tensor((n,), "float32"), output: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 1024), threads=128) as block:
            for i in T.Parallel(1024):
                output[block * 1024 + i] = source[block * 1024 + i]

    return kernel

def describe_loads(kernel):
    """Compile for sm_90; return the loads in machine code with the offsets that follow a thread's own address."""
    with Target({"kind": "cuda", "arch": "sm_90"}) as target:
        source = tilelang.lower(kernel, target=target, enable_device_compile=False).kernel_source
    (work / "kernel.cu").write_text(source)
    subprocess.run(["nvcc", *OPTIONS, work / "kernel.cu", "-o", work / "kernel.cubin"], check=True)
    command = ["nvdisasm", "-c", work / "kernel.cubin"]
    code = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    loads = re.findall(r"(LDG\.\S+) .*\.64(?:\+(0x\w+))?\]", code)
    offsets = sorted(int(offset or "0", 16) for _, offset in loads)
    return f"{len(loads)} {' '.join({load for load, _ in loads})}, offsets {offsets}"

print("tilelang", tilelang.__version__)
for n in (4096, 4100, 4097):
    print(f"T.copy of {n}:", describe_loads(make_copy(n)))
    print(f"T.Parallel of {n}:", describe_loads(make_parallel(n)))
PYTHON
PYTHONPATH="$work:$PYTHONPATH" python3 -W ignore "$work/copy_kernels.py" "$work" 2>"$work/messages" |
  sed -n '/^tilelang/,$p' | tee "$work/seen"

expected='tilelang 0.1.15
T.copy of 4096: 2 LDG.E.128.CONSTANT, offsets [0, 2048]
T.Parallel of 4096: 2 LDG.E.128.CONSTANT, offsets [0, 2048]
T.copy of 4100: 2 LDG.E.128.CONSTANT, offsets [0, 2048]
T.Parallel of 4100: 2 LDG.E.128.CONSTANT, offsets [0, 2048]
T.copy of 4097: 8 LDG.E.CONSTANT, offsets [0, 512, 1024, 1536, 2048, 2560, 3072, 3584]
T.Parallel of 4097: 8 LDG.E.CONSTANT, offsets [0, 4, 8, 12, 2048, 2052, 2056, 2060]'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
