#!/usr/bin/env bash
# Guess: torchao's `fp8_blockwise_act_quant()` and `fp8_blockwise_weight_quant()` quantise a block of zeros to zeros.
# What happens: the scale is max(|x|) / 448, which is 0, and the elements are 0 / 0: NaN, which float8 keeps. A product
# with them, as `blockwise_fp8_gemm()`, is NaN in the whole row, or in the columns.
# The smallest number that is not 0 makes the block right.
# Version: torchao 0.18.0, torch 2.13.0, run on the CPU by the interpreter of Triton 3.9.0 up to the conversion, and
# compiled for sm_90: the conversion has no comparison before it. Seen on 1 December 2026.
# Why it matters: 128 zeros in a row are usual: padded tokens, pruned weights, outputs of ReLU. One such token makes NaN
# of its row, silently, and one block of weights NaN of 128 columns. Unsloth's copy of this kernel has a scale of 1.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check triton==3.9.0 torch==2.13.0 numpy==2.4.6
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps torchao==0.18.0
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/quantise.py" <<'PYTHON'
import os
import re
from importlib.metadata import version

import torch
import torch.utils._triton
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

# No GPU is asked for Triton.
torch.utils._triton.has_triton = lambda *_: True
from torchao.kernel import blockwise_quantization

kernels = blockwise_quantization._get_triton_impls()
if os.environ.get("TRITON_INTERPRET"):
    # The interpreter converts NaN to 384, so float32 stands for float8 here, and for the product's operands.
    activations = torch.randn(4, 256)
    activations[1] = 0
    activations[2, 128:] = 0
    activations[3, 128:] = 1e-30
    quantised, scales = torch.empty_like(activations), torch.empty(4, 2)
    kernels.act_quant[(8,)](activations, quantised, scales, BLOCK_SIZE=128)
    print("NaN in each row:", quantised.isnan().sum(1).tolist())
    restored = quantised * scales.repeat_interleave(128, 1)
    print("NaN in each row of a product:", (restored @ torch.ones(256, 8)).isnan().sum(1).tolist())
    weights = torch.randn(256, 256)
    weights[:128, :128] = 0
    quantised = torch.empty_like(weights)
    kernels.weight_quant[(2, 2)](weights, quantised, torch.empty(2, 2), 256, 256, BLOCK_SIZE=128)
    print("NaN in the weights:", quantised.isnan().sum().item(), "of", quantised.numel())
else:
    print("torchao", version("torchao"), "triton", triton.__version__, "torch", torch.__version__.split("+")[0])
    signature = {"x_ptr": "*fp32", "y_ptr": "*fp8e4nv", "s_ptr": "*fp32", "BLOCK_SIZE": "constexpr"}
    source = ASTSource(kernels.act_quant, signature, {(3,): 128}, {(n,): [["tt.divisibility", 16]] for n in range(3)})
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]
    operations = re.findall(r"^\s*((?:div|cvt|selp|setp)\.\S*?f32\S*)", ptx, re.MULTILINE)
    print("operations of floats:", ", ".join(sorted(set(operations))))
PYTHON
{ "$work/venv/bin/python" -W ignore "$work/quantise.py"
  TRITON_INTERPRET=1 "$work/venv/bin/python" -W ignore "$work/quantise.py"; } 2>"$work/messages" | tee "$work/seen"

expected='torchao 0.18.0 triton 3.9.0 torch 2.13.0
operations of floats: cvt.rn.satfinite.e4m3x2.f32, div.approx.f32, div.full.f32
NaN in each row: [0, 256, 128, 0]
NaN in each row of a product: [0, 8, 8, 0]
NaN in the weights: 16384 of 65536'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
