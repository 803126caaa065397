#!/usr/bin/env bash
# Guess, written after reading the source: `cupyx.scipy.signal.resample_poly(x, 160, 147, axis=1)` of two channels
# gives for each channel what it gives for that channel alone.
# What happens: the kernel for two and more dimensions multiplies the output's index by `down` in 32 bits, and divides
# the product by `up`. From output 29,217,465 on, ten minutes at 48 kHz, the product passes 2^32, and the signal
# begins anew. The kernel for one dimension has 64 bits. `upfirdn()` has the same kernels.
# Version: CuPy 14.2.0, its kernels compiled by nvcc 13.5.37 for sm_90. Seen on 1 December 2026.
# Why it matters: ten minutes of stereo sound from 44.1 to 48 kHz are right, and then the beginning is heard again.
# Nothing is raised. Short test signals do not show it. With a larger `down` it is earlier.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m pip install -qq --disable-pip-version-check --no-deps --target packages cupy-cuda13x==14.2.0 \
  nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 \
  nvidia-cuda-cccl==13.3.5.0.6
PATH="$work/packages/nvidia/cu13/bin:$PATH"
# The text that CuPy compiles, without the kernels of complex numbers and their header.
python3 - <<'PYTHON'
import re

text = open("packages/cupyx/scipy/signal/_upfirdn.py").read()
code = re.search(r"UPFIRDN_KERNEL = r?'''(.*?)'''", text, re.DOTALL)[1]
code = re.sub(r'extern "C"[^{}]*complex[^{}]*\{[^}]*\}\n', "", code)
open("kernels.cu", "w").write(code.replace("#include <cupy/complex.cuh>", ""))
PYTHON
nvcc -arch=sm_90 -std=c++17 -ptx kernels.cu -o kernels.ptx 2>messages

cat >describe.py <<'PYTHON'
import re

code = open("kernels.ptx").read()
print("CuPy 14.2.0, nvcc 13.5.37")
# Parameter 3 of one kernel and 4 of the other is `up`, and the next one is `down`.
for kernel, up in ("_cupy_upfirdn1D_float32", 3), ("_cupy_upfirdn2D_float32", 4):
    body = re.search(rf"\.entry {kernel}\(.*?\n}}", code, re.DOTALL)[0]
    names = {}
    for name, parameter in ("up", up), ("down", up + 1):
        register = re.search(rf"ld\.param\.\w+\s+(%\w+), \[{kernel}_param_{parameter}\]", body)[1]
        wide = re.findall(rf"cvt\.[su]64\.[su]32\s+(%\w+), {register};", body)
        names |= dict.fromkeys([register, *wide], name)
    products = re.findall(r"(mul\.lo\.\w+)\s+(%\w+), %\w+, (%\w+);", body)
    products = {product: operation for operation, product, factor in products if names.get(factor) == "down"}
    quotients = re.findall(r"(div\.\w+)\s+%\w+, (%\w+), (%\w+);", body)
    ways = {f"{products[product]}, {division}" for division, product, divisor in quotients
            if product in products and names.get(divisor) == "up"}
    print(f"{kernel}: index * down / up is", *sorted(ways))
for output in 1000, 29217464, 29217465, 40000000:
    sample = output * 147 % 2**32 // 160
    print(f"output {output} begins at sample {output * 147 // 160}, and with 32 bits at {sample}")
PYTHON
python3 describe.py | tee seen

expected='CuPy 14.2.0, nvcc 13.5.37
_cupy_upfirdn1D_float32: index * down / up is mul.lo.s64, div.u64
_cupy_upfirdn2D_float32: index * down / up is mul.lo.s32, div.u32
output 1000 begins at sample 918, and with 32 bits at 918
output 29217464 begins at sample 26843545, and with 32 bits at 26843545
output 29217465 begins at sample 26843545, and with 32 bits at 0
output 40000000 begins at sample 36750000, and with 32 bits at 9906454'
[ "$(cat seen)" = "$expected" ] || { cat messages >&2; echo 'the behaviour changed' >&2; exit 1; }
