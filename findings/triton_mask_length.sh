#!/usr/bin/env bash
# Guess: the mask `offset < n` of a Triton copy does not change how an aligned array is read: each thread loads four
# neighbouring floats at once. And the less Triton knows about alignment, the worse the loads coalesce.
# What happens: 128-bit loads need a length, too, that Triton knows to be divisible by 16. With another length each
# thread still owns four neighbours, but loads them one by one, 16 bytes apart from the next thread's: a warp's load
# touches 16 sectors for the bytes of 4. If the pointers are not known to be aligned either, threads own single
# floats, and the loads coalesce perfectly.
# Version: Triton 3.9.0, a target of sm_90, which needs no GPU.
# Why it matters: Triton specialises on divisibility by itself, so a benchmark at n = 1000 measures another machine code
# than one at n = 1024. Pointers known to be aligned make it worse.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" triton==3.9.0
export PYTHONPATH="$work/packages" TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/copy_kernel.py" <<'PYTHON'
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def copy(output, source, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(output + offset, tl.load(source + offset, mask=offset < n), mask=offset < n)

def describe_loads(*divisible):
    """Compile for arguments that are divisible by 16; return the loads with the offsets that follow a shared base."""
    kernel = ASTSource(
        fn=copy,
        signature={"output": "*fp32", "source": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={(3,): 1024},
        attrs={(copy.arg_names.index(name),): [["tt.divisibility", 16]] for name in divisible},
    )
    ptx = triton.compile(kernel, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    loads = re.findall(r"ld\.global\.(\S+) .*?\[ (%rd\d+) \+ (\d+) \]", ptx)
    bases = len({base for _, base, _ in loads})
    return f"{len(loads)} loads {loads[0][0]} at {bases} addresses, offsets {sorted({int(load[2]) for load in loads})}"

print("triton", triton.__version__)
print("pointers and n divisible by 16:", describe_loads("output", "source", "n"))
print("pointers alone:", describe_loads("output", "source"))
print("neither:", describe_loads())
PYTHON
python3 "$work/copy_kernel.py" | tee "$work/seen"

expected='triton 3.9.0
pointers and n divisible by 16: 2 loads v4.b32 at 2 addresses, offsets [0]
pointers alone: 8 loads b32 at 2 addresses, offsets [0, 4, 8, 12]
neither: 8 loads b32 at 8 addresses, offsets [0]'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
