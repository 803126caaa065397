#!/usr/bin/env bash
# Guess: a thread that owns four neighbours of a row loads the row's index once: the four elements have one address.
# What happens: Triton writes four equal loads of the index, of which three are never read. They are inline assembly, so
# LLVM keeps them; ptxas removes them.
# Version: Triton 3.9.0, ptxas and nvdisasm 13.5.37, sm_90, which needs no GPU.
# Why it matters: the PTX of gathers and embeddings shows up to four times the index loads of machine code. A count of
# loads in PTX is wrong for them. Met in kernels of torch.compile on an H200, where counts differed; no guess was written.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" triton==3.9.0 nvidia-cuda-nvcc==13.5.37 \
  nvidia-cuda-nvdisasm==13.5.37
export PYTHONPATH="$work/packages" PATH="$work/packages/nvidia/cu13/bin:$PATH" TRITON_CACHE_DIR="$work/cache"
export TRITON_DEFAULT_FP_FUSION=1

cat >"$work/gather_kernel.py" <<'PYTHON'
import re
import subprocess
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def gather(output, table, index, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index + place // 96, mask=place < n)
    tl.store(output + place, tl.load(table + row * 96 + place % 96, mask=place < n), mask=place < n)

signature = {"output": "*fp32", "table": "*fp32", "index": "*i64", "n": "i32", "BLOCK": "constexpr"}
attributes = {(place,): [["tt.divisibility", 16]] for place in range(4)}
source = ASTSource(fn=gather, signature=signature, constexprs={(4,): 512}, attrs=attributes)
ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
loads = re.findall(r"ld\.global\.(b64) \{ (%\w+) \}, \[ (%\w+ \+ \d+) \]", ptx)
unread = [load for load in loads if len(re.findall(rf"{load[1]}\b", ptx)) == 2]  # set to 0, and loaded
print("triton", triton.__version__)
print(f"loads of an index in PTX: {len(loads)}, at {len({load[2] for load in loads})} addresses, {len(unread)} unread")
path = Path(sys.argv[1], "gather.ptx")
path.write_text(ptx)
subprocess.run(["ptxas", "-arch=sm_90a", path, "-o", path.with_suffix(".cubin")], check=True)
code = subprocess.run(["nvdisasm", "-c", path.with_suffix(".cubin")], capture_output=True, text=True, check=True).stdout
print("in machine code:", len(re.findall(r"LDG\.E\.64", code)))
PYTHON
python3 "$work/gather_kernel.py" "$work" | tee "$work/seen"

expected='triton 3.9.0
loads of an index in PTX: 4, at 1 addresses, 3 unread
in machine code: 1'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
