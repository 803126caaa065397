#!/usr/bin/env bash
# Guess, written after the first sign: a loop of tl.dot over row-major float32 matrices copies both factors to shared memory with 16 bytes a thread,
# on each architecture.
# What happens: for sm_80 and sm_120 it does. For sm_90 and sm_100 the right factor takes four copies of 4 bytes for
# each of 16: its threads still own four neighbours, so the lanes of a copy lie 16 bytes apart, and a request touches
# 16 sectors for the bytes of 4. Factors of float16 keep copies of 16 bytes.
# Version: Triton 3.9.0, targets from sm_80 to sm_120, which need no GPU.
# Why it matters: wgmma transposes factors of 16 bits alone (PTX ISA), so Triton transposes this one on its way to
# shared memory. The same source loses coalescing on the newer GPU. A right factor that is stored transposed keeps it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" triton==3.9.0
export PYTHONPATH="$work/packages" TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/product_kernel.py" <<'PYTHON'
import re
from collections import Counter

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def product(left, right, output, length, N: tl.constexpr, STEP: tl.constexpr, TRANSPOSED: tl.constexpr):
    side, inner = tl.arange(0, N), tl.arange(0, STEP)
    total = tl.zeros((N, N), tl.float32)
    for first in range(0, length, STEP):
        k = first + inner
        a = tl.load(left + side[:, None] * length + k[None, :])
        if TRANSPOSED:
            b = tl.load(right + side[None, :] * length + k[:, None])
        else:
            b = tl.load(right + k[:, None] * N + side[None, :])
        total = tl.dot(a, b, total)
    tl.store(output + side[:, None] * N + side[None, :], total)

def describe_copies(dtype, arch, transposed=False):
    """Compile; return how many copies to shared memory there are of each size."""
    kernel = ASTSource(
        fn=product,
        signature={"left": f"*{dtype}", "right": f"*{dtype}", "output": "*fp32", "length": "i32"}
        | dict.fromkeys(("N", "STEP", "TRANSPOSED"), "constexpr"),
        constexprs={(4,): 64, (5,): 32, (6,): transposed},
        attrs={(place,): [["tt.divisibility", 16]] for place in range(4)},
    )
    ptx = triton.compile(kernel, target=GPUTarget("cuda", arch, 32)).asm["ptx"]
    sizes = Counter(int(size, 16) for size in re.findall(r"cp\.async\.c[ag]\.shared\.global .*?, (0x\w+)", ptx))
    return ", ".join(f"{count} of {size} bytes" for size, count in sorted(sizes.items()))

print("triton", triton.__version__)
for arch in (80, 90, 100, 120):
    print(f"float32, sm_{arch}: {describe_copies('fp32', arch)}")
print("float32, sm_90, right factor transposed:", describe_copies("fp32", 90, transposed=True))
print("float16, sm_90:", describe_copies("fp16", 90))
PYTHON
python3 "$work/product_kernel.py" | tee "$work/seen"

expected='triton 3.9.0
float32, sm_80: 24 of 16 bytes
float32, sm_90: 48 of 4 bytes, 12 of 16 bytes
float32, sm_100: 64 of 4 bytes, 16 of 16 bytes
float32, sm_120: 24 of 16 bytes
float32, sm_90, right factor transposed: 24 of 16 bytes
float16, sm_90: 12 of 16 bytes'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
