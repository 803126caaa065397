#!/usr/bin/env bash
# Guess: LigerCrossEntropyLoss, a replacement of torch.nn.CrossEntropyLoss, reads the logits and leaves them as they
# are; Liger's rotary embedding returns new tensors, as the function of Transformers that it replaces.
# What happens: the forward pass already stores the gradient, in place of the logits, if they require one. PyTorch is
# not told: their version stays, and no error is raised. Of a correct model the accuracy that is computed next is 0,
# since the target's gradient is the smallest. Queries that are a transposed view, as in Transformers, are overwritten,
# too.
# Version: liger-kernel 0.8.5, run on the CPU by the interpreter of Triton 3.9.0; torch 2.13.0. Seen on 1 December 2026.
# Why it matters: accuracy, perplexity or a second loss of the same logits are wrong without an error, in training
# alone, since logits without a gradient stay. A forward pass that should load N bytes loads them twice and stores N,
# too.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check triton==3.9.0 torch==2.13.0 numpy==2.4.6 \
  packaging==26.4
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps liger-kernel==0.8.5
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TRITON_INTERPRET=1

cat >"$work/losses.py" <<'PYTHON'
from importlib.metadata import version

import torch
import triton
from liger_kernel.ops import LigerRopeFunction
from liger_kernel.transformers import LigerCrossEntropyLoss
from torch.nn.functional import cross_entropy

torch.manual_seed(0)
print("liger-kernel", version("liger-kernel"), "triton", triton.__version__, "torch", torch.__version__.split("+")[0])
for requires_grad in False, True:
    logits = torch.randn(64, 100)
    targets = logits.argmax(1)
    second = cross_entropy(logits, targets).item()
    logits.requires_grad_(requires_grad)
    loss = LigerCrossEntropyLoss()(logits, targets).item()
    accuracy = (logits.argmax(1) == targets).float().mean().item()
    print(f"requires_grad {requires_grad}: loss {loss:.4f}, accuracy {accuracy:g}, version of the logits",
          f"{logits._version}, loss of PyTorch before {second:.4f}, after {cross_entropy(logits, targets).item():.4f}")
for label, view in ("contiguous", torch.randn(1, 8, 16, 64)), ("transposed", torch.randn(1, 16, 8, 64).transpose(1, 2)):
    queries, angles = view.clone(memory_format=torch.preserve_format), torch.randn(1, 16, 64)
    LigerRopeFunction.apply(view, view.clone(memory_format=torch.preserve_format), angles.cos(), angles.sin())
    print(f"{label} queries stay:", torch.equal(view, queries))
PYTHON
"$work/venv/bin/python" -W ignore "$work/losses.py" 2>"$work/messages" | tee "$work/seen"

expected='liger-kernel 0.8.5 triton 3.9.0 torch 2.13.0
requires_grad False: loss 2.5181, accuracy 1, version of the logits 0, loss of PyTorch before 2.5181, after 2.5181
requires_grad True: loss 2.6042, accuracy 0, version of the logits 0, loss of PyTorch before 2.6042, after 4.6196
contiguous queries stay: True
transposed queries stay: False'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
