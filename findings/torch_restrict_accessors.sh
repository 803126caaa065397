#!/usr/bin/env bash
# Guess: "Use RestrictPtrTraits as PtrTraits if you want the tensor's data pointer to be marked as __restrict__", says
# PyTorch's TensorAccessor.h. So a PackedTensorAccessor32 with it reads as a `const __restrict__` pointer does: with
# ld.global.nc, and once what a loop reads again.
# What happens: it reads as one with DefaultPtrTraits; the machine code is the same. The pointer is a member of a struct,
# where nvcc ignores __restrict__. Loads are plain, and a factor is loaded again after each store: 8 loads for 5.
# Version: PyTorch 2.15.0, nvcc and nvdisasm 13.5.37, sm_90. Seen on 30 November 2026.
# Why it matters: the kernels of PyTorch's LLTM tutorial are written so, and many extensions follow them. Only pointers
# that are parameters of the kernel themselves, from `tensor.data_ptr()`, have what the name promises.
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
(link,) = re.findall(r'href="([^"#]*/torch-2\.15\.0-cp313-cp313-macosx_14_0_arm64\.whl)', index)
with ZipFile(io.BufferedReader(RemoteFile(link), 1 << 20)) as files:
    folders = tuple(f"torch/include/{name}/" for name in ("ATen/core", "c10", "torch/headeronly"))
    files.extractall(".", [name for name in files.namelist() if name.startswith(folders)])
PYTHON
echo "PyTorch 2.15.0, $(nvcc --version | grep release)"
grep -A1 'Use RestrictPtrTraits' torch/include/torch/headeronly/core/TensorAccessor.h

cat >kernels.cu <<'CUDA'
#include <ATen/core/TensorAccessor.h>
#include <c10/util/ArrayRef.h>
#define KERNEL(NAME, MATRIX, VECTOR) \
  extern "C" __global__ void NAME(MATRIX output, VECTOR factors) { \
    const int column = blockIdx.x * blockDim.x + threadIdx.x; \
    for (int row = 0; row < 4; ++row) output[row][column] *= factors[column]; \
  }
template <class Number, size_t dimensions> using Plain = at::PackedTensorAccessor32<Number, dimensions, at::DefaultPtrTraits>;
template <class Number, size_t dimensions> using Restrict = at::PackedTensorAccessor32<Number, dimensions, at::RestrictPtrTraits>;
using PlainMatrix = Plain<float, 2>;
using PlainVector = const Plain<float, 1>;
using RestrictMatrix = Restrict<float, 2>;
using RestrictVector = const Restrict<float, 1>;
using RestrictConst = const Restrict<const float, 1>;
KERNEL(default_traits, PlainMatrix, PlainVector)
KERNEL(restrict_traits, RestrictMatrix, RestrictVector)
KERNEL(restrict_traits_of_const, RestrictMatrix, RestrictConst)
extern "C" __global__ void pointers(float *__restrict__ output, const float *__restrict__ factors, int stride) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  for (int row = 0; row < 4; ++row) output[row * stride + column] *= factors[column];
}
CUDA
nvcc -cubin -arch=sm_90 -std=c++20 -w --expt-relaxed-constexpr -I torch/include -I packages/nvidia/cu13/include/cccl kernels.cu -o kernels.cubin
nvdisasm -c kernels.cubin >listing
for kernel in default_traits restrict_traits restrict_traits_of_const pointers; do
  sed -n "/^\.text\.$kernel:/,/^\/\/---/p" listing | grep -oE '\bLDG\.[.A-Z0-9]+' | sort | uniq -c |
    awk -v line="$kernel:" '{ line = line " " $1 " " $2 } END { print line }'
done | tee seen
for kernel in default_traits restrict_traits; do
  sed -n "/^\.text\.$kernel:/,/^\/\/---/p" listing | grep -oE '/\*[0-9a-f]{4}\*/.*' | sed 's/L_x_[0-9]*/label/' >$kernel
done
cmp default_traits restrict_traits # the machine code

expected='default_traits: 8 LDG.E
restrict_traits: 8 LDG.E
restrict_traits_of_const: 8 LDG.E
pointers: 4 LDG.E 1 LDG.E.CONSTANT'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
