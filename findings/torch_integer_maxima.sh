#!/usr/bin/env bash
# Guess, written after the first sign: gpuAtomicMax() and gpuAtomicMin() of an int32 or int64, PyTorch's atomics for
# extensions, are one atomic maximum, as CUDA's atomicMax() is and as gpuAtomicAdd() is one addition.
# What happens: a load and a loop of compare-and-swap. Of lanes that meet at an address one can raise the value each turn,
# and the others try again, up to 32 turns a warp. ptxas makes of atomicMax() one reduction, and of 32 lanes that pass an
# int32 to one address one of their maximum.
# Version: PyTorch 2.15.0, nvcc and nvdisasm 13.5.37, sm_90. Seen on 1 December 2026.
# Why it matters: PyTorch's scatter_reduce() with "amax" or "amin" calls these functions for each integer. Maxima per group
# have few addresses, and their requests depend on the values.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 nvidia-cuda-nvdisasm==13.5.37 \
  nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
# Only headers are needed, so they are read out of a wheel on the index.
python3 - <<'PYTHON'
import io
import re
from urllib.request import Request, urlopen
from zipfile import ZipFile


class RemoteFile(io.RawIOBase):
    def __init__(self, link):
        self.link, self.place = link, 0
        self.size = int(urlopen(Request(link, method="HEAD")).headers["Content-Length"])

    def readable(self):
        return True

    seekable = readable

    def seek(self, offset, whence=0):
        self.place = (0, self.place, self.size)[whence] + offset
        return self.place

    def readinto(self, buffer):
        end = min(self.place + len(buffer), self.size)
        if self.place >= end:
            return 0
        read = urlopen(Request(self.link, headers={"Range": f"bytes={self.place}-{end - 1}"})).read()
        buffer[: len(read)] = read
        self.place += len(read)
        return len(read)


index = urlopen("https://pypi.org/simple/torch/").read().decode()
(link,) = re.findall(r'href="([^"#]*/torch-2\.15\.0-cp313-cp313-manylinux_2_28_x86_64\.whl)', index)
with ZipFile(io.BufferedReader(RemoteFile(link), 1 << 20)) as files:
    folders = ("torch/include/ATen/cuda/Atomic.cuh", "torch/include/c10/", "torch/include/torch/headeronly/")
    files.extractall(".", [name for name in files.namelist() if name.startswith(folders)])
PYTHON
echo "PyTorch 2.15.0, $(nvcc --version | grep release)"

cat >atomics.cu <<'CUDA'
#include <ATen/cuda/Atomic.cuh>
#define KERNEL(NAME, NUMBER, ATOMIC) \
  extern "C" __global__ void NAME(NUMBER *output, const NUMBER *source) { ATOMIC(output, source[threadIdx.x]); }
KERNEL(cuda_max_int32, int, atomicMax)
KERNEL(torch_max_int32, int, gpuAtomicMax)
KERNEL(torch_min_int32, int, gpuAtomicMin)
KERNEL(cuda_max_int64, long long, atomicMax)
KERNEL(torch_max_int64, int64_t, gpuAtomicMax)
KERNEL(torch_min_int64, int64_t, gpuAtomicMin)
KERNEL(torch_add_int32, int, gpuAtomicAdd)
KERNEL(torch_add_int64, int64_t, gpuAtomicAdd)
CUDA
nvcc -cubin -arch=sm_90 -std=c++20 -w --expt-relaxed-constexpr -I torch/include -I packages/nvidia/cu13/include/cccl atomics.cu \
  -o atomics.cubin
nvdisasm -c atomics.cubin >listing
for kernel in $(sed -n 's/^KERNEL(\(\w*\),.*/\1/p' atomics.cu); do
  echo "$kernel: $(sed -n "/^\.text\.$kernel:/,/^\/\/---/p" listing | grep -oE '\b(ATOMG?|REDG?|REDUX|CREDUX)\.[A-Z0-9.]*|\bREDUX' | xargs)"
done | tee seen

expected='cuda_max_int32: REDUX.MAX.S32 REDG.E.MAX.S32.STRONG.GPU
torch_max_int32: ATOMG.E.CAS.STRONG.GPU
torch_min_int32: ATOMG.E.CAS.STRONG.GPU
cuda_max_int64: REDG.E.MAX.S64.STRONG.GPU
torch_max_int64: ATOMG.E.CAS.64.STRONG.GPU
torch_min_int64: ATOMG.E.CAS.64.STRONG.GPU
torch_add_int32: REDUX.SUM REDG.E.ADD.STRONG.GPU
torch_add_int64: REDG.E.ADD.64.STRONG.GPU'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
