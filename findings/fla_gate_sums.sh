#!/usr/bin/env bash
# Guess: flash-linear-attention sums the gates of a chunk (float32, [batch, time, heads], the only layout) with lanes at
# neighbours, as it does vectors of gates, [batch, time, heads, 64].
# What happens: a program takes one head, whose times lie `heads` elements apart. From 8 heads on each element has a
# sector of its own: 32 sectors for the 128 bytes of a load, and of a store. The programs of the other heads use the
# rest of them.
# Version: fla-core 0.6.0, Triton 3.9.0, compiled for sm_90, which needs no GPU. Seen on 1 December 2026.
# Why it matters: gated delta rule, gated delta product and other models call it in each forward pass, and in each
# backward pass again. It moves 8 times the sectors that it needs: by a count of the PTX 2048 for the load and for the
# store of 8 KiB of gates.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check torch==2.13.0 triton==3.9.0 numpy==2.4.6 \
  einops==0.8.2 packaging==26.4
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps fla-core==0.6.0
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/gates.py" <<'PYTHON'
import re
from importlib.metadata import version
from types import SimpleNamespace

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

# No GPU is asked: the questions of the import have the answers of an H100.
target = GPUTarget("cuda", 90, 32)
triton.runtime.driver.set_active(SimpleNamespace(
    get_current_target=lambda: target, get_current_device=lambda: 0, get_benchmarker=lambda: None,
    get_active_torch_device=lambda: torch.device("cuda"),
))
torch.cuda.get_device_name = lambda *_: "NVIDIA H100"
torch.cuda.get_device_capability = lambda *_: (9, 0)
torch.cuda.get_device_properties = lambda *_: SimpleNamespace(name="NVIDIA H100", multi_processor_count=132)

from fla.ops.utils import cumsum

def describe_accesses(kernel, heads, **more):
    """Describe the first load and store of a warp, by the kernel's layout."""
    while not isinstance(kernel, triton.JITFunction):
        kernel = kernel.fn
    constants = {"B": 1, "H": heads, "BT": 64, "REVERSE": False, "HAS_SCALE": False, "IS_VARLEN": False} | more
    constants |= dict.fromkeys(("scale", "cu_seqlens", "chunk_indices")) | {"USE_GRAPH": False}
    types = {"s": "*fp32", "o": "*fp32", "T": "i32"}
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    places = {name: (place,) for place, name in enumerate(kernel.arg_names)}
    source = ASTSource(
        kernel, signature, {places[name]: constants[name] for name in places if name not in types},
        {places[name]: [["tt.divisibility", 16]] for name in ("s", "o")},
    )
    asm = triton.compile(source, target=target, options={"num_warps": 2}).asm
    descriptions = []
    for access, instruction in ("load", "ld"), ("store", "st"):
        name = re.search(rf"tt\.{access} .*!tt\.ptr<f32>, (#\w+)>", asm["ttgir"])[1]
        layout = re.search(rf"^{name} = (.*)", asm["ttgir"], re.MULTILINE)[1]
        layout = {key: [*map(int, numbers.split(","))] for key, numbers in re.findall(r"(\w+) = \[(.*?)\]", layout)}
        words = int((re.search(rf"{instruction}\.global\S*\.v(\d)", asm["ptx"]) or "11")[1])
        starts = [0]
        strides = 4 * heads * more.get("S", 1), 4
        for size, lanes, stride in zip(layout["sizePerThread"], layout["threadsPerWarp"], strides):
            starts = [start + lane * size * stride for start in starts for lane in range(lanes)]
        sectors = {(start + byte) // 32 for start in starts for byte in range(4 * words)}
        descriptions.append(f"{access} {len(sectors)} sectors for {128 * words} bytes")
    return ", ".join(descriptions)

print("fla-core", version("fla-core"), "triton", triton.__version__)
for heads in 1, 4, 8, 32:
    print(f"{heads} heads:", describe_accesses(cumsum.chunk_local_cumsum_scalar_kernel, heads))
print("32 heads of 64 gates:", describe_accesses(cumsum.chunk_local_cumsum_vector_kernel, 32, S=64, BS=64))
PYTHON
"$work/venv/bin/python" -W ignore "$work/gates.py" 2>"$work/messages" | tee "$work/seen"

expected='fla-core 0.6.0 triton 3.9.0
1 heads: load 4 sectors for 128 bytes, store 4 sectors for 128 bytes
4 heads: load 16 sectors for 128 bytes, store 16 sectors for 128 bytes
8 heads: load 32 sectors for 128 bytes, store 32 sectors for 128 bytes
32 heads: load 32 sectors for 128 bytes, store 32 sectors for 128 bytes
32 heads of 64 gates: load 16 sectors for 512 bytes, store 16 sectors for 512 bytes'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
