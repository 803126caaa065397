#!/usr/bin/env bash
# Guess: Conch quantises to int8 with the nearest integer, as vLLM's `scaled_int8_quant()` does, which it replaces; the
# kernel's comment says "Apply scaling factor, round, clamp, and cast to int8".
# What happens: nothing rounds. The cast drops the fraction: 0.9 becomes 0 and 126.9 becomes 126. Magnitudes shrink by
# half a step on average, and the error is twice that of rounding.
# Version: conch-triton-kernels 1.3, run on the CPU by the interpreter of Triton 3.9.0, which truncates as cvt.rzi does;
# torch 2.13.0. Seen on 1 December 2026.
# Why it matters: no error, no warning, and values that look right. All activations are biased towards 0, so products
# are, too. Conch's own reference in PyTorch truncates likewise, so its test passes.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check triton==3.9.0 torch==2.13.0 numpy==2.4.6
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps conch-triton-kernels==1.3
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TRITON_INTERPRET=1

cat >"$work/quantise.py" <<'PYTHON'
import inspect
from importlib.metadata import version

import torch
import triton
from conch.kernels.quantization import int8
from conch.ops.quantization.int8 import scaled_int8_quant

print("conch-triton-kernels", version("conch-triton-kernels"), "triton", triton.__version__)
print(*(line.strip() for line in inspect.getsource(int8).splitlines() if "round" in line))
values = torch.tensor([[0.4, 0.6, 0.9, -0.9, 1.5, 2.6, -2.6, 126.9]])
print("scale 1:", [round(value, 1) for value in values[0].tolist()], "to",
      scaled_int8_quant(values, torch.ones(1))[0][0].tolist())

torch.manual_seed(0)
values = torch.randn(64, 1000)
scale = values.abs().max() / 127
for label, quantised in (
    ("Conch", scaled_int8_quant(values, scale.view(1))[0]),
    ("nearest", (values / scale).round().clamp(-128, 127)),
):
    steps = quantised - values / scale
    shrunk = (quantised.abs() - (values / scale).abs()).mean()
    print(f"{label}: error {steps.square().mean().sqrt():.2f} steps, magnitudes {shrunk:+.2f} steps")
PYTHON
"$work/venv/bin/python" -W ignore "$work/quantise.py" 2>"$work/messages" | tee "$work/seen"

expected='conch-triton-kernels 1.3 triton 3.9.0
# Apply scaling factor, round, clamp, and cast to int8
scale 1: [0.4, 0.6, 0.9, -0.9, 1.5, 2.6, -2.6, 126.9] to [0, 0, 0, 0, 1, 2, -2, 126]
Conch: error 0.58 steps, magnitudes -0.50 steps
nearest: error 0.29 steps, magnitudes -0.00 steps'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
