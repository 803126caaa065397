#!/usr/bin/env bash
# Guess: cupyx.scatter_max() and scatter_min() of float64 "behave identically to numpy.maximum.at", as their documentation
# says. So do cupy.maximum.at() and atomicMax() of a double in one's own kernels.
# What happens: results are rounded to float32. CuPy's atomics of double call fmaxf() and fminf(), so the value that stands
# in the array is rounded, too, even if it is the larger one. 1e300 becomes infinity and 1e-300 becomes 0. NaN is dropped,
# where NumPy keeps it. nvcc's PTX has two cvt.rn.f32.f64 and a max.f32 before the compare-and-swap of 64 bits.
# Version: CuPy 14.2.0, its atomics.cuh run on the CPU by GCC and compiled by nvcc 13.5.37 for sm_90. Seen on 30 November
# 2026.
# Why it matters: results differ from NumPy's from the 8th digit on, or are infinite. Nothing is raised. The accesses are
# of 8 bytes, as they should be, so no count of memory traffic shows it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --no-deps --target packages nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 \
  nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 nvidia-cuda-cccl==13.3.5.0.6 numpy==2.3.5
PATH="$work/packages/nvidia/cu13/bin:$PATH"
# The sources are enough, so the link comes from the index.
python3 - <<'PYTHON'
import re
import tarfile
from urllib.request import urlopen

index = urlopen("https://pypi.org/simple/cupy/").read().decode()
(link,) = re.findall(r'href="([^"#]*/cupy-14\.2\.0\.tar\.gz)', index)
with tarfile.open(fileobj=urlopen(link), mode="r|gz") as archive:
    for member in archive:
        if "/cupy/_core/include/cupy/" in member.name:
            archive.extract(member, filter="data")
PYTHON
include=cupy-14.2.0/cupy/_core/include
echo "CuPy 14.2.0, $(nvcc --version | grep release)"

mkdir -p alone/cupy # what atomics.cuh uses of CuPy's arrays, for GCC
cp $include/cupy/atomics.cuh alone/cupy
cat >alone/cupy/carray.cuh <<'CPP'
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#define __device__
#define __CUDA_ARCH__ 900
namespace cupy { namespace type_traits = std; }
struct float16 {};
struct bfloat16 {};
template <class To, class From> To copy_bits(From value) { To to; std::memcpy(&to, &value, sizeof to); return to; }
int __float_as_int(float value) { return copy_bits<int>(value); }
float __int_as_float(int value) { return copy_bits<float>(value); }
long long __double_as_longlong(double value) { return copy_bits<long long>(value); }
double __longlong_as_double(long long value) { return copy_bits<double>(value); }
// One thread after the other, so that each compare-and-swap succeeds.
template <class Word> Word atomicCAS(Word *address, Word expected, Word value) {
  const Word old = *address;
  if (old == expected) *address = value;
  return old;
}
unsigned long long atomicAdd(unsigned long long *address, unsigned long long value) { return *address += value; }
CPP
cat >run.cpp <<'CPP'
#include <cupy/atomics.cuh>
int main(int, char **texts) {
  double maximum = std::atof(texts[1]), minimum = maximum;
  atomicMax(&maximum, std::atof(texts[2]));
  atomicMin(&minimum, std::atof(texts[2]));
  std::printf("CuPy has maximum %.17g, minimum %.17g\n", maximum, minimum);
}
CPP
g++ -std=c++17 -w -I alone run.cpp -o run
cat >kernel.cu <<'CUDA'
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
extern "C" __global__ void maximum(double *output, double value) { atomicMax(output, value); }
CUDA
nvcc -ptx -arch=sm_90 -std=c++17 -I $include -I packages/nvidia/cu13/include/cccl kernel.cu -o kernel.ptx
cat >compare.py <<'PYTHON'
import subprocess
import numpy as np

for first, second in [(0.1, 0.2), (16777217.0, 5.0), (1e300, 1.0), (1e-300, 0.0), (1.0, float("nan"))]:
    seen = subprocess.check_output(["./run", repr(first), repr(second)], text=True).strip()
    print(f"{first!r} and {second!r}: {seen}; NumPy {np.maximum(first, second):.17g}, {np.minimum(first, second):.17g}")
PYTHON
{
  PYTHONPATH=packages python3 compare.py
  grep -oE '(cvt\.r|max\.|atom\.)[.a-z0-9]+' kernel.ptx | xargs
} | tee seen

expected='0.1 and 0.2: CuPy has maximum 0.20000000298023224, minimum 0.10000000149011612; NumPy 0.20000000000000001, 0.10000000000000001
16777217.0 and 5.0: CuPy has maximum 16777216, minimum 5; NumPy 16777217, 5
1e+300 and 1.0: CuPy has maximum inf, minimum 1; NumPy 1.0000000000000001e+300, 1
1e-300 and 0.0: CuPy has maximum 0, minimum 0; NumPy 1e-300, 0
1.0 and nan: CuPy has maximum 1, minimum 1; NumPy nan, nan
cvt.rn.f32.f64 cvt.rn.f32.f64 max.f32 atom.global.cas.b64'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
