#!/usr/bin/env bash
# Guess, written after reading the source: `normalize_data(image, 10, 0, 255, type="atan")` of cuCIM has results from
# 0 to 10. Its documentation says: "Normalize intensities to the range of [0, norm_constant]."
# What happens: the kernel computes `norm_constant / (max - min) * atan(pixel - min)`. The arctangent is at most 1.57,
# and is divided by the range all the same: an image of 0 to 255 has results up to 0.06. All pixels above 20 lie
# within 3 % of each other. `type="range"` is right.
# Version: cuCIM 26.10.0, its kernels run on the CPU by GCC. Seen on 1 December 2026.
# Why it matters: images are black, and contrast is only left in their darkest pixels. Nothing is raised.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --disable-pip-version-check --no-deps --target packages cucim-cu13==26.10.0
python3 - <<'PYTHON'
import runpy

source = runpy.run_path("packages/cucim/core/operations/intensity/kernel/cuda_kernel_source.py")["cuda_kernel_code"]
# The first two kernels; the others do not concern normalize_data().
open("kernels.h", "w").write(source.split("__global__ void scaleVolume")[0] + "}")
PYTHON
echo "cuCIM 26.10.0, $(g++ --version | head -n 1)"

cat >run.cpp <<'CPP'
#include <cmath>
#include <cstdio>
#define __global__
using std::atan;
struct { unsigned x; } blockIdx, blockDim{128}, threadIdx;
#include "kernels.h"

int main() {
  float pixels[] = {0, 1, 20, 128, 255}, range[5], arctangent[5];
  // normalize_data() passes this factor and the minimum.
  const float norm_constant = 10, min_value = 0, max_value = 255, factor = norm_constant / (max_value - min_value);
  for (threadIdx.x = 0; threadIdx.x < 5; threadIdx.x++) {
    normalize_data_by_range(pixels, range, factor, min_value, 5);
    normalize_data_by_atan(pixels, arctangent, factor, min_value, 5);
  }
  for (int i = 0; i < 5; i++)
    std::printf("pixel %.0f: by range %.4f, by atan %.4f\n", pixels[i], range[i], arctangent[i]);
}
CPP
g++ -std=c++17 -O1 -w -o run run.cpp
./run | tee seen

expected='pixel 0: by range 0.0000, by atan 0.0000
pixel 1: by range 0.0392, by atan 0.0308
pixel 20: by range 0.7843, by atan 0.0596
pixel 128: by range 5.0196, by atan 0.0613
pixel 255: by range 10.0000, by atan 0.0614'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
