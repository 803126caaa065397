#!/usr/bin/env bash
# Guess: with FlagGems, operators of int64 and float64 compute in that type, as PyTorch's and as FlagGems' own sum().
# What happens: products, std(), var_mean(), dot(), mv() and linspace() compute in float32 and return the other type.
# 3 to the power of 20 is wrong by prod(), and by another amount along an axis; linspace() of integers does not end at
# its end. Of float64 7 digits are right, not 15. sum(), cumsum() and mm() are right.
# Version: flag-gems 5.0.2, run on the CPU by the interpreter of Triton 3.9.0, one configuration of each kernel; torch
# 2.13.0. Seen on 1 December 2026.
# Why it matters: `flag_gems.enable()` replaces these operators of PyTorch. Sizes, strides and indices that are computed
# from prod() or linspace() are wrong above 2^24, without an error, and double precision is lost silently.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check triton==3.9.0 torch==2.13.0 numpy==2.4.6 \
  pyyaml==6.0.3 sqlalchemy==2.0.48 packaging==26.4
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps flag-gems==5.0.2
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TRITON_INTERPRET=1 GEMS_VENDOR=nvidia

cat >"$work/results.py" <<'PYTHON'
import contextlib
import sys
from importlib import import_module
from importlib.metadata import files, version
from types import ModuleType, SimpleNamespace

import torch
import triton

# No GPU is asked: the questions of the import have the answers of an H100, and each kernel has one configuration.
torch.cuda.device_count, torch.cuda.current_device, torch.cuda.device = lambda: 1, lambda: 0, contextlib.nullcontext
torch.cuda.get_device_capability = lambda *_: (9, 0)
torch.cuda.get_device_properties = lambda *_: SimpleNamespace(name="NVIDIA H100", multi_processor_count=132)
place = next(file for file in files("flag-gems") if file.name == "config.py").locate().parent
for name, folder in ("flag_gems", place), ("flag_gems.ops", place / "ops"):
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__path__ = [str(folder)]
utils, entries = import_module("flag_gems.utils"), sys.modules["flag_gems.utils.libentry"]
utils.libentry = entries.libentry = lambda: lambda kernel: kernel
utils.libtuner = entries.libtuner = lambda configs, **_: triton.autotune(configs[:1], key=[])
autotune = triton.autotune
triton.autotune = lambda configs, key, **_: autotune(configs[:1], key=[])

def load(name, module=None):
    return getattr(import_module(f"flag_gems.ops.{module or name}"), name)

print("flag-gems", version("flag-gems"), "triton", triton.__version__, "torch", torch.__version__.split("+")[0])
threes = torch.full((1, 20), 3)
print("prod of int64:", load("prod")(threes).item(), "and along an axis", load("prod_dim", "prod")(threes, 1).item(),
      "of FlagGems,", threes.prod().item(), "of PyTorch")
ends = [linspace(0, 2**30 + 1, 5, dtype=torch.int64)[-1].item() for linspace in (load("linspace"), torch.linspace)]
print("linspace of int64 ends at", *ends)
torch.manual_seed(0)
rows = torch.rand(8, 40, dtype=torch.float64) + 0.5
for label, gems, pytorch in (
    ("prod", load("prod")(rows[0]), rows[0].prod()),
    ("std", load("std")(rows, [1]), rows.std(1)),
    ("var_mean", load("var_mean")(rows, [1])[1], rows.mean(1)),
    ("dot", load("dot")(rows[0], rows[1]), rows[0].dot(rows[1])),
    ("mv", load("mv")(rows, rows[0]), rows.mv(rows[0])),
    ("sum", load("sum")(rows), rows.sum()),
    ("cumsum", load("cumsum")(rows, 1), rows.cumsum(1)),
    ("mm", load("mm")(rows, rows.t().contiguous()), rows @ rows.t()),
):
    error = ((gems - pytorch) / pytorch).abs().max().item()
    print(f"{label}: returns {gems.dtype}, as exact as {'float32' if error > 1e-10 else 'float64'}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/results.py" 2>"$work/messages" | tee "$work/seen"

expected='flag-gems 5.0.2 triton 3.9.0 torch 2.13.0
prod of int64: 3486784256 and along an axis 3486784512 of FlagGems, 3486784401 of PyTorch
linspace of int64 ends at 1073741824 1073741825
prod: returns torch.float64, as exact as float32
std: returns torch.float64, as exact as float32
var_mean: returns torch.float64, as exact as float32
dot: returns torch.float64, as exact as float32
mv: returns torch.float64, as exact as float32
sum: returns torch.float64, as exact as float64
cumsum: returns torch.float64, as exact as float64
mm: returns torch.float64, as exact as float64'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
