#!/usr/bin/env bash
# Guess, written after reading the source: gsplat's SelectiveAdam, which "extends the standard Adam optimizer by
# incorporating selective updates", makes Adam's steps where all Gaussians are visible.
# What happens: the kernel does not correct the bias of its averages, which begin at 0. With Adam's default betas the
# first step is 3.2 times as long, the tenth 6.5 times and the thirtieth 5.6 times; after 1000 steps it is 1.3 times,
# after 5000 the same. `torch.optim.Adam`, its base class, corrects both.
# Version: gsplat 1.5.3, its kernel run on the CPU by GCC. Seen on 1 December 2026.
# Why it matters: a learning rate that was found with Adam is several times too large in the first hundreds of steps,
# and so it is for each Gaussian that is added later with averages of 0.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --disable-pip-version-check --no-deps --target packages gsplat==1.5.3
python3 - <<'PYTHON'
import re

text = open("packages/gsplat/cuda/csrc/AdamCUDA.cu").read()
kernel = re.search(r"template <typename scalar_t>\n__global__ void adam_kernel.*?\n}\n", text, re.DOTALL)[0]
open("kernel.h", "w").write(kernel)
PYTHON
echo "gsplat 1.5.3, $(g++ --version | head -n 1)"

cat >run.cpp <<'CPP'
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#define __global__
#define __restrict__
struct grid { unsigned long long thread_rank() { return 0; } };
namespace cg { grid this_grid() { return {}; } }
#include "kernel.h"

int main() {
  const float lr = 0.01f, b1 = 0.9f, b2 = 0.999f, eps = 1e-8f, gradient = 0.5f;
  float parameter = 0, average = 0, square = 0;
  const bool visible = true;
  double m = 0, v = 0;
  for (int step = 1; step <= 5000; step++) {
    const float before = parameter = 0;
    adam_kernel(1, 1, &parameter, &gradient, &average, &square, &visible, lr, b1, b2, eps);
    m = b1 * m + (1 - b1) * gradient;
    v = b2 * v + (1 - b2) * gradient * gradient;
    const double adam = lr * (m / (1 - std::pow(b1, step))) / (std::sqrt(v / (1 - std::pow(b2, step))) + eps);
    for (int shown : {1, 10, 30, 100, 1000, 5000})
      if (step == shown)
        std::printf("step %d with a gradient of 0.5: %.4f, and %.4f of Adam\n", step, before - parameter, adam);
  }
}
CPP
g++ -std=c++17 -O1 -w -o run run.cpp
./run | tee seen

expected='step 1 with a gradient of 0.5: 0.0316, and 0.0100 of Adam
step 10 with a gradient of 0.5: 0.0653, and 0.0100 of Adam
step 30 with a gradient of 0.5: 0.0557, and 0.0100 of Adam
step 100 with a gradient of 0.5: 0.0324, and 0.0100 of Adam
step 1000 with a gradient of 0.5: 0.0126, and 0.0100 of Adam
step 5000 with a gradient of 0.5: 0.0100, and 0.0100 of Adam'
[ "$(cat seen)" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
