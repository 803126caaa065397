#!/usr/bin/env bash
# Guess: Conch's `dequantize_4bit()` and `quantize_4bit()`, replacements of bitsandbytes' kernels by Triton, read the
# elements of a block with neighbouring lanes, as bitsandbytes' own Triton kernels do.
# What happens: a program loops over its block, and each turn loads a scalar, a byte of two elements, in all four warps,
# and stores the two elements one after the other from one lane. Quantising loads the block as a vector, for its
# maximum, and then again by single elements.
# Version: conch-triton-kernels 1.3, bitsandbytes 0.50.2, compiled by Triton 3.9.0 for sm_90, which needs no GPU. Seen
# on 1 December 2026.
# Why it matters: by a count of the PTX 8448 requests to load and 4096 to store 4096 elements from NF4 to float32, where
# 4 and 32 of 16 bytes a lane would do. A request touches one sector, so sectors per request look ideal.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check triton==3.9.0 torch==2.13.0 numpy==2.4.6
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps conch-triton-kernels==1.3 \
  bitsandbytes==0.50.2
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/kernels.py" <<'PYTHON'
import re
import sys
from importlib.metadata import files, version

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from conch.kernels.quantization.bitsandbytes import dequantize_blockwise, quantize_blockwise

# bitsandbytes itself asks for a GPU's libraries; the module of its kernels does not.
sys.path.insert(0, str(next(file for file in files("bitsandbytes") if file.name == "kernels_4bit.py").locate().parent))
import kernels_4bit

def describe_accesses(kernel, types, constants):
    """Describe the loads and stores of scalars and of tensors, the loops, and the widths in PTX."""
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    places = {name: (place,) for place, name in enumerate(kernel.arg_names)}
    source = ASTSource(
        kernel, signature, {places[name]: constants.get(name) for name in places if name not in types},
        {places[name]: [["tt.divisibility", 16]] for name in types},
    )
    asm = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm
    accesses = []
    for access in "load", "store":
        lines = re.findall(rf"^( *).*tt\.{access} .*: (tensor)?", asm["ttgir"], re.MULTILINE)
        counts = sum(not tensor for _, tensor in lines), sum(bool(tensor) for _, tensor in lines)
        accesses.append(f"{counts[0]} scalar and {counts[1]} vector {access}s")
    loops = asm["ttgir"].count("scf.for") + asm["ttgir"].count("scf.while")
    widths = {" ".join(words) for words in re.findall(r"(ld|st)\.global\S*?\.((?:v\d\.)?b\d+)\s", asm["ptx"])}
    return f"{', '.join(accesses)}, {loops} loops, {', '.join(sorted(widths))}"

print("conch-triton-kernels", version("conch-triton-kernels"), "bitsandbytes", version("bitsandbytes"),
      "triton", triton.__version__)
numbers, packed, count = "*fp32", "*u8", "i32"
sizes = {"cxpr_blocksize": 64, "cxpr_input_blocksize": 32, "cxpr_output_blocksize": 32, "cxpr_quantized_dtype": 1}
sizes |= {"QUANT_BLOCK": 64, "BLOCK_SIZE": 64, "SPLIT_SIZE": 256, "SPLIT_NUM_BLOCKS": 4}
for label, kernel, types in (
    ("from NF4, Conch", dequantize_blockwise._dequantize_blockwise_kernel,
     {"x_ptr": packed, "absmax_ptr": numbers, "out_ptr": numbers, "output_size": count}),
    ("from NF4, bitsandbytes", kernels_4bit.dequant_nf4_kernel,
     {"a_ptr": packed, "c_ptr": numbers, "absmax_ptr": numbers, "num_paired_elements": count,
      "num_output_elements": count}),
    ("to NF4, Conch", quantize_blockwise._quantize_blockwise_kernel,
     {"x_ptr": numbers, "absmax_ptr": numbers, "out_ptr": packed, "input_size": count}),
    ("to NF4, bitsandbytes", kernels_4bit.quantize_nf4_blockwise_kernel,
     {"A_ptr": numbers, "absmax_ptr": numbers, "out_ptr": packed, "n_elements": count, "absmax_elements": count}),
):
    print(f"{label}: {describe_accesses(kernel, types, sizes)}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/kernels.py" 2>"$work/messages" | tee "$work/seen"

expected='conch-triton-kernels 1.3 bitsandbytes 0.50.2 triton 3.9.0
from NF4, Conch: 2 scalar and 0 vector loads, 2 scalar and 0 vector stores, 1 loops, ld b32, ld b8, st b32
from NF4, bitsandbytes: 0 scalar and 2 vector loads, 0 scalar and 1 vector stores, 0 loops, ld b16, ld b32, st v4.b32
to NF4, Conch: 2 scalar and 1 vector loads, 2 scalar and 0 vector stores, 1 loops, ld b32, st b32, st b8
to NF4, bitsandbytes: 0 scalar and 1 vector loads, 0 scalar and 2 vector stores, 0 loops, ld v4.b32, st b16, st b32'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
