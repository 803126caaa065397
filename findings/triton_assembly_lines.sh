#!/usr/bin/env bash
# Guess: the line table names the line of `tl.load` for its load, as compilers do for a statement.
# What happens: Triton writes accesses as inline assembly, and LLVM adds the lines within the assembly to that of the
# statement. The load of line 9 follows an instruction that sets its result, so it is in line 10, as the store is.
# Version: Triton 3.9.0, a target of sm_90, which needs no GPU.
# Why it matters: a profiler that reads the line table shows the load's sectors beside another statement.
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
def copy(output, source):
    x = tl.load(source + tl.arange(0, 32))  # line 9
    tl.store(output + tl.arange(0, 32), x)  # line 10

signature = {"output": "*fp32", "source": "*fp32"}
compiled = triton.compile(ASTSource(fn=copy, signature=signature), target=GPUTarget("cuda", 90, 32))
line = 0
print("triton", triton.__version__)
for text in compiled.asm["ptx"].splitlines():
    if location := re.match(r"\s*\.loc\s+1 (\d+)", text):
        line = int(location[1])
    elif access := re.search(r"\b(ld|st)\.global", text):
        print(access[0], "in line", line)
PYTHON
python3 "$work/copy_kernel.py" | tee "$work/seen"

expected='triton 3.9.0
ld.global in line 10
st.global in line 10'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
