#!/usr/bin/env bash
# Guess: with FlagGems, `x.var(1)`, `torch.var_mean()` and `x.std()` of float32 are PyTorch's up to rounding, wherever
# the mean is: the kernels are named after Welford's algorithm, which is used because it does not cancel.
# What happens: each lane's elements are summed by Welford's algorithm, but lanes are merged by
# `M_x + mc_x * mean_x + M_y + mc_y * mean_y - count * mean * mean`, a difference of squares in float32. Of 1000 numbers
# around 10,000 that vary by 1 the variance is negative: -82. `x.std()` of all elements is the mean of squares less the
# square of the mean, at least 0: it is 0. `x.std(1)` has two passes, and is right.
# Version: flag-gems 5.0.2, run on the CPU by the interpreter of Triton 3.9.0, one configuration of each kernel; torch
# 2.13.0. Seen on 1 December 2026.
# Why it matters: `flag_gems.enable()` replaces these operators of PyTorch. Times in seconds and coordinates in metres
# have such means. Who normalises them divides by 0, or by the root of a negative number.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check triton==3.9.0 torch==2.13.0 numpy==2.4.6 \
  pyyaml==6.0.3 sqlalchemy==2.0.48 packaging==26.4
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check --no-deps flag-gems==5.0.2
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TRITON_INTERPRET=1 GEMS_VENDOR=nvidia

cat >"$work/variances.py" <<'PYTHON'
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
    """Return an operator of FlagGems; its module is imported alone."""
    return getattr(import_module(f"flag_gems.ops.{module or name}"), name)

print("flag-gems", version("flag-gems"), "triton", triton.__version__, "torch", torch.__version__.split("+")[0])
var_mean, std = load("var_mean"), load("std")
torch.manual_seed(0)
noise = torch.randn(8, 1000)
for mean in 0, 10_000:
    numbers = mean + noise
    for label, gems, pytorch in (
        ("var_mean(x, 1)", var_mean(numbers, [1])[0].min(), numbers.var(1).min()),
        ("var_mean(x)", var_mean(numbers)[0], numbers.var()),
        ("std(x, 1)", std(numbers, [1]).min(), numbers.std(1).min()),
        ("std(x)", std(numbers), numbers.std()),
    ):
        result = "right" if (gems / pytorch - 1).abs() < 0.01 else "negative" if gems < 0 else f"{gems.item():g}"
        print(f"mean {mean}, {label}: {pytorch.item():.2f} of PyTorch, and FlagGems is {result}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/variances.py" 2>"$work/messages" | tee "$work/seen"

expected='flag-gems 5.0.2 triton 3.9.0 torch 2.13.0
mean 0, var_mean(x, 1): 0.93 of PyTorch, and FlagGems is right
mean 0, var_mean(x): 1.01 of PyTorch, and FlagGems is right
mean 0, std(x, 1): 0.96 of PyTorch, and FlagGems is right
mean 0, std(x): 1.00 of PyTorch, and FlagGems is right
mean 10000, var_mean(x, 1): 0.93 of PyTorch, and FlagGems is negative
mean 10000, var_mean(x): 1.01 of PyTorch, and FlagGems is negative
mean 10000, std(x, 1): 0.96 of PyTorch, and FlagGems is right
mean 10000, std(x): 1.00 of PyTorch, and FlagGems is 0'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
