#!/usr/bin/env bash
# Guess, written before reading the source: cuCIM's `regionprops_dict()` reads labels and intensities with
# neighbouring lanes at neighbours of a row.
# What happens: each thread reads 16 pixels alone, one after the other. Lanes lie 16 pixels apart, 64 bytes of int32
# or float32: a load touches 32 sectors where 4 would do. The kernels of areas, boxes, centroids and moments are
# written in the same way. With `pixels_per_thread` of `regionprops_dict()` from 128 to 255, which the documentation
# offers for tuning, a thread counts pixels in an int8: 32,768 pixels of one region are counted as 4,294,934,528.
# Version: cuCIM 26.10.0, its kernel run thread by thread on the CPU by GCC. Seen on 1 December 2026.
# Why it matters: 8 times the sectors a request, which only L1 can make good. The wrong counts are areas, and divide
# the sums of mean intensities.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/python -m pip install -qq --disable-pip-version-check numpy==2.4.6
venv/bin/python -m pip install -qq --disable-pip-version-check --no-deps --target packages cucim-cu13==26.10.0
echo "cuCIM 26.10.0, $(g++ --version | head -n 1)"

cat >generate.py <<'PYTHON'
import sys
from types import ModuleType
from unittest.mock import MagicMock

import numpy

# CuPy is not needed to write a kernel's text.
cupy = MagicMock(dtype=numpy.dtype, uint32=numpy.uint32, uint64=numpy.uint64, float64=numpy.float64,
                 float32=numpy.float32, memoize=lambda **_: lambda function: function)
package = ModuleType("measure")
package.__path__ = ["packages/cucim/skimage/measure"]
sys.modules |= {"cupy": cupy, "measure": package, "measure._regionprops_gpu_utils": MagicMock()}
from measure._regionprops_gpu_intensity_kernels import get_intensity_measure_kernel

for pixels in 16, 128:
    get_intensity_measure_kernel(numpy.float32, pixels_per_thread=pixels)
    _, _, source = cupy.ElementwiseKernel.call_args.args
    print(f"void measure_{pixels}(size_t i) {{ {source} }}")
PYTHON
venv/bin/python generate.py >kernels.h 2>messages

cat >run.cpp <<'CPP'
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>
#include <vector>
using std::min, std::max;
const uint64_t labels_size = 1 << 15;
std::vector<uintptr_t> loads; // of one thread
// An array whose loads are noted.
template <class Number> struct array {
  alignas(256) Number elements[labels_size];
  Number operator[](size_t i) const { loads.push_back(uintptr_t(elements + i)); return elements[i]; }
};
typedef int X;
array<X> labels;
array<float> img;
uint32_t counts[1];
double sums[1];
template <class Number, class Value> void atomicAdd(Number *address, Value value) { *address += value; }
#include "kernels.h"

int main() {
  for (X &label : labels.elements) label = 1;
  std::vector<std::set<uintptr_t>> sectors;
  for (int lane = 0; lane < 32; lane++) {
    loads.clear();
    measure_16(lane);
    sectors.resize(loads.size());
    for (size_t j = 0; j < loads.size(); j++) sectors[j].insert(loads[j] / 32);
  }
  size_t sum = 0;
  for (auto &lines : sectors) sum += lines.size();
  std::printf("a warp reads 512 labels and intensities, 128 sectors: %zu loads of %zu sectors\n", sectors.size(), sum);
  counts[0] = 0;
  for (size_t i = 0; i < labels_size / 16; i++) measure_16(i);
  std::printf("%d pixels of one region, 16 a thread: %u\n", int(labels_size), counts[0]);
  counts[0] = 0;
  for (size_t i = 0; i < labels_size / 128; i++) measure_128(i);
  std::printf("%d pixels of one region, 128 a thread: %u\n", int(labels_size), counts[0]);
}
CPP
g++ -std=c++17 -O1 -w -o run run.cpp
./run | tee seen

expected='a warp reads 512 labels and intensities, 128 sectors: 33 loads of 1056 sectors
32768 pixels of one region, 16 a thread: 32768
32768 pixels of one region, 128 a thread: 4294934528'
[ "$(cat seen)" = "$expected" ] || { cat messages >&2; echo 'the behaviour changed' >&2; exit 1; }
