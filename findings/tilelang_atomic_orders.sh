#!/usr/bin/env bash
# Guess: `T.atomic_add(counter, 1, memory_order="release")` is a release on NVIDIA GPUs: its documentation says that the
# order is honoured on CUDA targets by both paths.
# What happens: of float32, float64 and integers it is a relaxed addition, with no fence, unless `return_prev=True` is
# given: then it is `atom.add.release`. Of float16 it is a release on sm_90 and relaxed on sm_80. `T.atomic_max` is a
# release of float32 and int32, and relaxed of float16, also with `return_prev=True`.
# Version: TileLang 0.1.15, nvcc 13.5.37, sm_80 and sm_90, which needs no GPU. Seen on 30 November 2026.
# Why it matters: products that are split along the sum count finished blocks this way. Without the release the last
# block may read partial sums that another has not stored yet: wrong results, and rarely.
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
cat >"$work/additions.py" <<'PYTHON'
import re
import subprocess
import sys
from pathlib import Path

import tilelang
import tilelang.language as T
from tvm.target import Target

work = Path(sys.argv[1])
FOLDERS = "tilelang/src", "tilelang/3rdparty/cutlass/include", "nvidia/cu13/include/cccl"
OPTIONS = ["-w", "-ptx", "-std=c++17", *(f"-I{work}/packages/{folder}" for folder in FOLDERS)]

def make_kernel(update, dtype, returns):
    """Make a kernel that stores a number and then updates a counter with release order."""

    @T.prim_func
    def kernel(data: T.Tensor((256,), dtype), counter: T.Tensor((1,), dtype)):
        with T.Kernel(1, threads=128):
            i = T.get_thread_binding()
            data[i] = T.cast(7, dtype)
            if returns:
                data[i + 128] = update(counter[0], data[i], memory_order="release", return_prev=True)
            else:
                update(counter[0], data[i], memory_order="release")

    return kernel

def find_atomics(architecture, *kernel):
    """Compile; return the atomics and fences in PTX."""
    with Target({"kind": "cuda", "arch": architecture}) as target:
        source = tilelang.lower(make_kernel(*kernel), target=target, enable_device_compile=False).kernel_source
    (work / "kernel.cu").write_text(source)
    files = [work / "kernel.cu", "-o", work / "kernel.ptx"]
    subprocess.run(["nvcc", f"-arch={architecture}", *OPTIONS, *files], check=True)
    return " ".join(re.findall(r"\b(?:atom|red|fence|membar)\.[\w.:]+", (work / "kernel.ptx").read_text()))

print("tilelang", tilelang.__version__)
for update, dtypes in (T.atomic_add, ("int32", "float32", "float16")), (T.atomic_max, ("int32", "float16")):
    for dtype in dtypes:
        for architecture in ("sm_80", "sm_90") if dtype == "float16" else ("sm_90",):
            unused, used = (find_atomics(architecture, update, dtype, returns) for returns in (False, True))
            print(f"{update.__name__} {dtype} {architecture}: {unused}; returned: {used}")
PYTHON
PYTHONPATH="$work:$PYTHONPATH" python3 -W ignore "$work/additions.py" "$work" 2>"$work/messages" |
  sed -n '/^tilelang/,$p' | tee "$work/seen"

expected='tilelang 0.1.15
atomic_add int32 sm_90: atom.global.add.u32; returned: atom.add.release.gpu.s32
atomic_add float32 sm_90: atom.global.add.f32; returned: atom.add.release.gpu.f32
atomic_add float16 sm_80: atom.add.noftz.f16; returned: atom.release.gpu.global.add.noftz.f16
atomic_add float16 sm_90: atom.release.gpu.global.add.noftz.f16; returned: atom.release.gpu.global.add.noftz.f16
atomic_max int32 sm_90: atom.max.release.gpu.s32; returned: atom.max.release.gpu.s32
atomic_max float16 sm_80: atom.global.cas.b16; returned: atom.global.cas.b16
atomic_max float16 sm_90: atom.global.cas.b16; returned: atom.global.cas.b16'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
