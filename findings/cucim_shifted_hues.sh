#!/usr/bin/env bash
# Guess, written after reading the source: `color_jitter(image, hue=(-0.5, -0.5))` of cuCIM turns each hue half round
# the circle, as with 0.5: green becomes magenta.
# What happens: the kernel adds `hue_factor * 255` to an unsigned char, and C++ converts the sum from float. A GPU's
# conversion to unsigned integers makes negative numbers 0, so hues that would pass 0 become red: green, yellow and
# orange alike. Sums above 255 turn round, so positive factors are right. On an x86 processor the same line is right.
# Version: cuCIM 26.10.0, its kernel compiled by nvcc 13.5.37 for sm_90. Seen on 1 December 2026.
# Why it matters: ranges are symmetric: `hue=0.5` draws from -0.5 to 0.5. Half of the draws are negative, and images
# lose up to half of their hues. Nothing is raised.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --disable-pip-version-check --no-deps --target packages cucim-cu13==26.10.0 \
  nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 \
  nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
python3 - <<'PYTHON'
import runpy

source = runpy.run_path("packages/cucim/core/operations/color/kernel/cuda_kernel_source.py")["cuda_kernel_code"]
open("kernels.cu", "w").write(source)
PYTHON
nvcc -arch=sm_90 -ptx kernels.cu -o kernels.ptx 2>messages

cat >describe.py <<'PYTHON'
import colorsys
import re

print("cuCIM 26.10.0, nvcc 13.5.37")
body = re.search(r"\.entry huejitter_kernel\(.*?\n}", open("kernels.ptx").read(), re.DOTALL)[0]
factor = re.search(r"ld\.param\.\w+\s+(%\w+), \[huejitter_kernel_param_3\]", body)[1]
operation, result = re.search(rf"(fma\.\S+)\s+(%\w+), {factor}, 0f437F0000", body).groups()
conversion, integer = re.search(rf"(cvt\.\S+)\s+(%\w+), {result};", body).groups()
mask = re.search(rf"(and\.\w+)\s+%\w+, {integer}, (\d+)", body).groups()
print(f"hue_factor * 255 + hue: {operation}, {conversion}, {mask[0]} with {mask[1]}")

def show(hue):
    return tuple(round(255 * part) for part in colorsys.hsv_to_rgb(hue / 255, 1, 1))

for factor in 0.5, -0.5, -0.1:
    for name, hue in ("orange", 21), ("yellow", 42), ("green", 85), ("blue", 170):
        total = hue + factor * 255
        # The instructions make a negative sum 0, and keep the lower 8 bits of others.
        right = f", where {show(int(total) % 256)} is right" if total < 0 else ""
        print(f"{name} by {factor}: {show(int(max(total, 0)) & 255)}{right}")
    print(f"of 256 hues {sum(hue + factor * 255 <= -1 for hue in range(256))} become 0 by {factor}")
PYTHON
python3 describe.py | tee seen

expected='cuCIM 26.10.0, nvcc 13.5.37
hue_factor * 255 + hue: fma.rn.f32, cvt.rzi.u32.f32, and.b32 with 255
orange by 0.5: (0, 132, 255)
yellow by 0.5: (0, 6, 255)
green by 0.5: (252, 0, 255)
blue by 0.5: (255, 246, 0)
of 256 hues 0 become 0 by 0.5
orange by -0.5: (255, 0, 0), where (0, 120, 255) is right
yellow by -0.5: (255, 0, 0), where (6, 0, 255) is right
green by -0.5: (255, 0, 0), where (255, 0, 246) is right
blue by -0.5: (255, 252, 0)
of 256 hues 127 become 0 by -0.5
orange by -0.1: (255, 0, 0), where (255, 0, 18) is right
yellow by -0.1: (255, 96, 0)
green by -0.1: (156, 255, 0)
blue by -0.1: (0, 156, 255)
of 256 hues 25 become 0 by -0.1'
[ "$(cat seen)" = "$expected" ] || { cat messages >&2; echo 'the behaviour changed' >&2; exit 1; }
