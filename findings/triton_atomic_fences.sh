#!/usr/bin/env bash
# Guess: tl.atomic_add() whose result is unused becomes a reduction, as atomicAdd() of CUDA C++ does: REDG.
# What happens: by default it has the semantics acq_rel. In machine code a fence for the whole GPU stands before it, it
# returns the old value (ATOMG), and all lines of L1 are invalidated behind it. With sem="release" the fence and REDG
# remain, with sem="relaxed" REDG alone.
# Version: Triton 3.9.0 with its own ptxas, nvdisasm 13.5.37, a target of sm_90, which needs no GPU.
# Why it matters: a histogram or a split sum in Triton is not what the same sum in CUDA C++ is. Each atomic waits for
# earlier accesses, returns a value that nobody uses, and empties L1. A count of sectors shows none of it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" triton==3.9.0 nvidia-cuda-nvdisasm==13.5.37
export PYTHONPATH="$work/packages" TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1
PATH="$work/packages/nvidia/cu13/bin:$PATH"

cat >"$work/add_kernel.py" <<'PYTHON'
import re
import subprocess
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def add(output, source, SEMANTICS: tl.constexpr):
    i = tl.arange(0, 128)
    tl.atomic_add(output + i, tl.load(source + i), sem=SEMANTICS)

def list_accesses(semantics):
    """Return the accesses to global memory and the fences in machine code, in order."""
    kernel = ASTSource(
        fn=add, signature={"output": "*i32", "source": "*i32", "SEMANTICS": "constexpr"}, constexprs={(2,): semantics}
    )
    path = sys.argv[1] + "/kernel.cubin"
    with open(path, "wb") as file:
        file.write(triton.compile(kernel, target=GPUTarget("cuda", 90, 32)).asm["cubin"])
    code = subprocess.run(["nvdisasm", "-c", path], check=True, capture_output=True, text=True).stdout
    return " ".join(re.findall(r"\b(?:LDG|ATOMG|REDG|MEMBAR|CCTL)[.A-Z0-9]*", code))

print("triton", triton.__version__)
for semantics in (None, "acq_rel", "release", "relaxed"):
    print(f"{semantics}:", list_accesses(semantics))
PYTHON
python3 "$work/add_kernel.py" "$work" | tee "$work/seen"

expected='triton 3.9.0
None: LDG.E MEMBAR.ALL.GPU ATOMG.E.ADD.STRONG.GPU CCTL.IVALL
acq_rel: LDG.E MEMBAR.ALL.GPU ATOMG.E.ADD.STRONG.GPU CCTL.IVALL
release: LDG.E MEMBAR.ALL.GPU REDG.E.ADD.STRONG.GPU
relaxed: LDG.E REDG.E.ADD.STRONG.GPU'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
