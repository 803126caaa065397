#!/usr/bin/env bash
# Guess: GpuAtomicMax() and GpuAtomicMin() of TensorFlow's gpu_device_functions.h, which "provides atomic operations on
# types that aren't natively supported", compare int64_t with a sign, as they do int.
# What happens: they are atom.max.u64 and atom.min.u64, so each negative number is larger than each positive one: the
# maximum of 5 and -1 is -1. What keeps the sign is compiled for ROCm and for GPUs before sm_32 alone. CUDA itself has a
# signed atomicMax() of long long: atom.max.s64.
# Version: TensorFlow 2.21.0, nvcc 13.5.37, sm_90. Seen on 30 November 2026.
# Why it matters: this header is installed for one's own GPU kernels, and gpu_kernel_helper.h includes it. Maxima over
# segments of int64 are wrong without an error as soon as a number is negative; of int, float and double they are right.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 \
  nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
# Headers are read out of the wheel on the index, which has 545 MB.
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


index = urlopen("https://pypi.org/simple/tensorflow/").read().decode()
(link,) = re.findall(r'href="([^"#]*/tensorflow-2\.21\.0-cp311-cp311-manylinux_2_27_x86_64\.whl)', index)
folders = "Eigen/ unsupported/ tensorflow/core/platform/ tensorflow/core/util/gpu_ tsl/ xla/tsl/ absl/ ml_dtypes/"
with ZipFile(io.BufferedReader(RemoteFile(link), 1 << 20)) as files:
    wanted = tuple(f"tensorflow/include/{folder}" for folder in folders.split())
    names = [name for name in files.namelist() if name.startswith(wanted)]
    files.extractall(".", sorted(names, key=lambda name: files.getinfo(name).header_offset))
PYTHON
echo "TensorFlow 2.21.0, $(nvcc --version | grep release)"

mkdir -p own/third_party/gpus/cuda/include # where TensorFlow expects CUDA
echo '#include <cuda.h>' >own/third_party/gpus/cuda/include/cuda.h
cat >kernels.cu <<'CUDA'
#define GOOGLE_CUDA 1
#define EIGEN_USE_GPU
#include "tensorflow/core/util/gpu_device_functions.h"
#define KERNEL(TYPE) \
  extern "C" __global__ void maximum_of_##TYPE(TYPE *output, TYPE value) { tensorflow::GpuAtomicMax(output, value); } \
  extern "C" __global__ void minimum_of_##TYPE(TYPE *output, TYPE value) { tensorflow::GpuAtomicMin(output, value); }
KERNEL(int)
KERNEL(int64_t)
using own_int64 = long long;
extern "C" __global__ void maximum_by_cuda(own_int64 *output, own_int64 value) { atomicMax(output, value); }
CUDA
nvcc -ptx -arch=sm_90 -std=c++17 -w --expt-relaxed-constexpr -I own -I tensorflow/include -I packages/nvidia/cu13/include/cccl kernels.cu -o kernels.ptx
awk '/\.entry/ { split($3, name, "(") } /atom\.|red\./ { print name[1] ": " $1 }' kernels.ptx | sort | tee seen

expected='maximum_by_cuda: atom.global.max.s64
maximum_of_int64_t: atom.global.max.u64
maximum_of_int: atom.global.max.s32
minimum_of_int64_t: atom.global.min.u64
minimum_of_int: atom.global.min.s32'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
