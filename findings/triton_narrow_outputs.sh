#!/usr/bin/env bash
# Guess: a Triton kernel reads an array of float32 as a copy does, 16 bytes a lane at neighbours, whichever type it
# converts the elements to before it stores them.
# What happens: the load gets the layout of the narrower store. For an output of bfloat16 a lane owns 8 elements, or 32
# bytes of the input, which it loads in two halves; of int8 or float8 16 elements, or 64 bytes, in four. So 16 bytes lie
# 32 or 64 apart, and each load of a warp touches 32 sectors for the bytes of 16. If the output is wider instead, the
# layout is changed between them through shared memory, and both accesses are whole.
# Version: Triton 3.9.0, a target of sm_90, which needs no GPU. Seen on 1 December 2026.
# Why it matters: quantisers and casts, as those of LMDeploy, GemLite and Conch, request each sector of their
# input twice, or half of each sector twice. Profilers call that uncoalesced, and a copy's count is no reference for
# them. By a count of the PTX 4096 sectors for 64 KiB of float32 cast to float16 or int8, and 2048 for those copied.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" triton==3.9.0
export PYTHONPATH="$work/packages" TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/cast_kernel.py" <<'PYTHON'
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

BYTES = {"fp32": 4, "bf16": 2, "i8": 1, "fp8e4nv": 1}

@triton.jit
def cast(output, source, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    elements = tl.load(source + offset, mask=offset < n)
    tl.store(output + offset, elements.to(output.dtype.element_ty), mask=offset < n)

def describe_access(asm, access, size, instruction):
    """Describe a warp's access, by the layout that it has and the width of its instruction."""
    layout = re.search(rf"tt\.{access} .*!tt\.ptr<\w+>, (#\w+)>", asm["ttgir"])[1]
    lane_elements = int(re.search(rf"^{layout} = .*sizePerThread = \[(\d+)\]", asm["ttgir"], re.MULTILINE)[1])
    width = 4 * int(re.search(rf"{instruction}\.global\.v(\d)\.b32", asm["ptx"])[1])
    sectors = {(lane * lane_elements * size + byte) // 32 for lane in range(32) for byte in range(width)}
    return f"{access} {len(sectors)} sectors for {32 * width} bytes,"

print("triton", triton.__version__)
for source, output in ("fp32", "fp32"), ("fp32", "bf16"), ("fp32", "i8"), ("bf16", "fp8e4nv"), ("bf16", "fp32"):
    kernel = ASTSource(
        fn=cast,
        signature={"output": "*" + output, "source": "*" + source, "n": "i32", "BLOCK": "constexpr"},
        constexprs={(3,): 4096},
        attrs={(place,): [["tt.divisibility", 16]] for place in range(3)},
    )
    asm = triton.compile(kernel, target=GPUTarget("cuda", 90, 32)).asm
    accesses = describe_access(asm, "load", BYTES[source], "ld"), describe_access(asm, "store", BYTES[output], "st")
    print(f"{source} to {output}:", *accesses, "by shared memory" if "st.shared" in asm["ptx"] else "directly")
PYTHON
python3 "$work/cast_kernel.py" 2>"$work/messages" | tee "$work/seen"

expected='triton 3.9.0
fp32 to fp32: load 16 sectors for 512 bytes, store 16 sectors for 512 bytes, directly
fp32 to bf16: load 32 sectors for 512 bytes, store 16 sectors for 512 bytes, directly
fp32 to i8: load 32 sectors for 512 bytes, store 16 sectors for 512 bytes, directly
bf16 to fp8e4nv: load 32 sectors for 512 bytes, store 16 sectors for 512 bytes, directly
bf16 to fp32: load 16 sectors for 512 bytes, store 16 sectors for 512 bytes, by shared memory'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
