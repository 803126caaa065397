#!/usr/bin/env bash
# Guess: `thunder.jit(cross_entropy, executors=[triton_ex])` gives PyTorch's loss, and leaves out labels of -100, the
# default `ignore_index`.
# What happens: the kernel ignores a label only `if IGNORE_INDEX >= 0`. For -100 it loads the element 100 places before
# the row, of the row before, and adds it to the loss; the mean still divides by the number of labels that count. The
# gradient of an ignored row is its softmax, and not 0. An index of 0 or more is right.
# Version: lightning-thunder 0.2.6, run on the CPU by the interpreter of Triton 3.6.0; torch 2.10.0. Seen on
# 1 December 2026.
# Why it matters: padding and prompts are labelled -100 by most libraries. Losses are wrong without an error, here twice
# too large, and training pulls the ignored rows, too. The kernel is chosen for losses without gradients; the class with
# its backward pass is called here directly.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check torch==2.10.0 triton==3.6.0 numpy==2.3.5 \
  lightning-thunder==0.2.6
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TRITON_INTERPRET=1

cat >"$work/losses.py" <<'PYTHON'
from importlib.metadata import version

import thunder
import torch
import triton
from thunder.executors import triton_crossentropy_impl as impl
from torch.nn.functional import cross_entropy

print("lightning-thunder", version("lightning-thunder"), "triton", triton.__version__, "torch", version("torch"))
# One configuration of each kernel, so that none is measured.
for kernel in impl._forward, impl._backward:
    kernel.configs = kernel.configs[:1]
compiled = thunder.jit(cross_entropy, executors=[impl.triton_ex, thunder.pytorch_executor])
torch.manual_seed(0)
logits = torch.randn(4, 1000)
for labels, ignored in ([3, 4, 5, 6], -100), ([3, 999, 5, 999], 999), ([3, -100, 5, -100], -100):
    labels = torch.tensor(labels)
    losses = [function(logits, labels, ignore_index=ignored).item() for function in (cross_entropy, compiled)]
    assert "triton_crossentropy" in str(thunder.last_traces(compiled)[-1])
    gradients = []
    for function in cross_entropy, impl.cross_entropy:
        leaf = logits.clone().requires_grad_()
        function(leaf, labels, ignore_index=ignored).backward()
        gradients.append([round(size, 2) for size in leaf.grad.abs().sum(1).tolist()])
    print(f"labels {labels.tolist()}, ignored {ignored}")
    for label, loss, sizes in zip(("PyTorch", "Thunder"), losses, gradients):
        print(f"  {label}: loss {loss:.2f}, gradients of the rows {sizes}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/losses.py" 2>"$work/messages" | tee "$work/seen"

expected='lightning-thunder 0.2.6 triton 3.6.0 torch 2.10.0
labels [3, 4, 5, 6], ignored -100
  PyTorch: loss 7.36, gradients of the rows [0.5, 0.5, 0.5, 0.5]
  Thunder: loss 7.36, gradients of the rows [0.5, 0.5, 0.5, 0.5]
labels [3, 999, 5, 999], ignored 999
  PyTorch: loss 7.87, gradients of the rows [1.0, 0.0, 1.0, 0.0]
  Thunder: loss 7.87, gradients of the rows [1.0, 0.0, 1.0, 0.0]
labels [3, -100, 5, -100], ignored -100
  PyTorch: loss 7.87, gradients of the rows [1.0, 0.0, 1.0, 0.0]
  Thunder: loss 17.49, gradients of the rows [1.0, 0.5, 1.0, 0.5]'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
