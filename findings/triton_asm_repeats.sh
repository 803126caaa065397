#!/usr/bin/env bash
# Guess: tl.inline_asm_elementwise(..., is_pure=False) of an atomic addition runs once an element: its documentation
# says "map where the function is inline assembly". tl.atomic_add() of the same addresses adds once an element.
# What happens: every thread that holds a copy of the element runs it. 16 elements in a block of 128 threads are added
# to 8 times each, and a scalar 128 times; 128 elements once each. tl.atomic_add() masks the copies.
# Version: Triton 3.9.0, a target of sm_90, which needs no GPU. Seen on 30 November 2026.
# Why it matters: counters, locks and signals by inline assembly are wrong by the number of copies, which num_warps, a
# parameter of autotuning, changes. Stores with one's own cache policy are right, but make 8 or 128 times the requests.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" triton==3.9.0
export PYTHONPATH="$work/packages" TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/additions.py" <<'PYTHON'
import re
from collections import Counter

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def by_assembly(counts, SIZE: tl.constexpr):
    counts += tl.arange(0, SIZE) if SIZE > 1 else 0
    assembly: tl.constexpr = "red.relaxed.gpu.global.add.u32 [$1], 1; mov.u32 $0, 0;"
    tl.inline_asm_elementwise(assembly, "=r,l", [counts], dtype=tl.int32, is_pure=False, pack=1)

@triton.jit
def by_atomic_add(counts, SIZE: tl.constexpr):
    counts += tl.arange(0, SIZE) if SIZE > 1 else 0
    tl.atomic_add(counts, 1, sem="relaxed")

OPERATIONS = {"mov": lambda a: a, "and": int.__and__, "or": int.__or__, "shl": int.__lshift__, "shr": int.__rshift__}
OPERATIONS |= {"add": int.__add__, "mad": lambda a, b, c: a * b + c, "bfe": lambda a, b, c: a >> b & (1 << c) - 1}
TESTS = {"eq": int.__eq__, "ne": int.__ne__, "lt": int.__lt__, "gt": int.__gt__}

def find_additions(ptx, thread):
    """Compute the addresses, less that of the array, to which a thread adds."""
    values = {"%tid.x": thread}
    for guard, name, kind, text in re.findall(r"^\s*(?:@(%p\d+) )?(\w+)\.(\S+)\s+(.*?);", ptx, re.MULTILINE):
        target, *operands = re.findall(r"[%\w.-]+", text)
        numbers = [int(x) if x.lstrip("-").isdigit() else values.get(x, 0) for x in operands]
        if name in ("red", "atom"):
            address = target if name == "red" else operands[0]
            if not guard or values[guard]:
                yield values.get(address, 0)
        elif name == "setp":
            values[target] = TESTS[kind.split(".")[0]](*numbers)
        elif name in OPERATIONS:
            values[target] = OPERATIONS[name](*numbers)

def count(kernel, size, warps):
    """Compile for a number of warps; return how often an element is added to."""
    source = ASTSource(kernel, {"counts": "*i32", "SIZE": "constexpr"}, {(1,): size})
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps}).asm["ptx"]
    additions = Counter(address for thread in range(32 * warps) for address in find_additions(ptx, thread))
    assert set(additions) == {4 * i for i in range(size)}
    (times,) = set(additions.values())
    return times

print("triton", triton.__version__)
for size in 1, 16, 128, 512:
    for warps in 1, 4:
        times = [count(kernel, size, warps) for kernel in (by_assembly, by_atomic_add)]
        print("{} elements, {} warps: {} times each by assembly, {} by tl.atomic_add()".format(size, warps, *times))
PYTHON
python3 "$work/additions.py" | tee "$work/seen"

expected='triton 3.9.0
1 elements, 1 warps: 32 times each by assembly, 1 by tl.atomic_add()
1 elements, 4 warps: 128 times each by assembly, 1 by tl.atomic_add()
16 elements, 1 warps: 2 times each by assembly, 1 by tl.atomic_add()
16 elements, 4 warps: 8 times each by assembly, 1 by tl.atomic_add()
128 elements, 1 warps: 1 times each by assembly, 1 by tl.atomic_add()
128 elements, 4 warps: 1 times each by assembly, 1 by tl.atomic_add()
512 elements, 1 warps: 1 times each by assembly, 1 by tl.atomic_add()
512 elements, 4 warps: 1 times each by assembly, 1 by tl.atomic_add()'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
