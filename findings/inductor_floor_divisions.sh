#!/usr/bin/env bash
# Guess: with torch.compile `x // 0.1` is what PyTorch, NumPy and Python give: how many whole tenths x has.
# What happens: the quotient is rounded to nearest first, and its floor taken then: 5 // 0.1 is 50, and 49 in all
# others. `5 % 0.1` stays 0.1, so that quotient and remainder make 5.1. The C++ for CPUs and the Triton for CUDA do the
# same.
# Version: torch 2.13.0 for CPUs, compiled there by GCC; Triton 3.9.0. For CUDA Inductor generates alone, and its
# questions have an H100's answers. Seen on 1 December 2026.
# Why it matters: `(x // size).long()` is the usual way to the cell of a grid, a voxel or a bin. Of 1000 multiples of
# 0.1 446 have another cell when compiled: gathers and atomics go elsewhere, without a warning.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check torch==2.13.0 triton==3.9.0 numpy==2.4.6
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TORCHINDUCTOR_CACHE_DIR="$work/inductor" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/generated.py" <<'PYTHON'
import importlib.util
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch
import triton
from torch._guards import TracingContext, tracing
from torch._inductor import codecache, compile_fx, config
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.runtime import hints, triton_helpers
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.fake_tensor_prop import FakeTensorProp
from triton.backends.compiler import GPUTarget

# No GPU is asked: the questions of Inductor and Triton have the answers of an H100.
H100 = {"type": "cuda", "index": 0, "multi_processor_count": 132, "cc": 90, "major": 9, "warp_size": 32}
H100 |= {"regs_per_multiprocessor": 65536, "max_threads_per_multi_processor": 2048, "max_threads_per_block": 1024}
properties = SimpleNamespace(**H100, minor=0, name="H100", total_memory=80 << 30)
target = GPUTarget("cuda", 90, 32)
triton.runtime.driver.set_active(SimpleNamespace(get_current_target=lambda: target, get_current_device=lambda: 0))
for module, answers in (
    (hints.DeviceProperties, {"create": lambda _: hints.DeviceProperties(**H100)}),
    (triton_helpers, {"set_driver_to_gpu": lambda: None}),
    (torch.cuda, {"is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0}),
    (torch.cuda, {"get_device_capability": lambda *_: (9, 0), "get_device_properties": lambda *_: properties}),
    (torch.cuda, {"get_rng_state": lambda: torch.zeros(1), "set_rng_state": lambda _: None}),
    (torch.cuda, {"_exchange_device": int, "_maybe_exchange_device": int}),
):
    for name, answer in answers.items():
        setattr(module, name, answer)

def generate_kernels(function, *inputs):
    """Yield the kernels that Inductor generates for contiguous CUDA tensors like the inputs, and their sources."""
    graph = make_fx(lambda *tensors: (function(*tensors),), select_decomp_table(), "fake")(*inputs)
    mode = FakeTensorMode()
    fakes = [FakeTensor(mode, tensor.to("meta"), torch.device("cuda:0")) for tensor in inputs]
    FakeTensorProp(graph, mode).propagate_dont_convert_inputs(*fakes)
    write = mock.patch.object(codecache.PyCodeCache, "write", side_effect=InterruptedError)
    with write as written, tracing(TracingContext(mode)), config.patch(fx_graph_cache=False):
        try:
            compile_fx.compile_fx_inner(graph, fakes)
        except Exception:
            if not written.called:
                raise
    code = written.call_args.args[0]
    for name, source in re.findall(r"async_compile\.triton\('(\w+)', '''(.*?)'''", code, re.DOTALL):
        path = Path(sys.argv[1], f"{name}.py")
        path.write_text(source)
        specification = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        yield getattr(module, name), source

def find_cells(x, size):
    return (x // size).long()

x = torch.arange(1, 1001) * torch.tensor(0.1)
size = torch.full((1000,), 0.1)
print("torch", torch.__version__.split("+")[0], "triton", triton.__version__)
((_, source),) = generate_kernels(find_cells, x, size)
print("Triton for CUDA:", *re.findall(r"= (\S*(?:div_rn|floor)\(.*\))", source))
PYTHON
cat >"$work/cells.py" <<'PYTHON'
import torch

def find_cells(x, size):
    return (x // size).long()

x = torch.arange(1, 1001) * torch.tensor(0.1)
size = torch.full((1000,), 0.1)
compiled, eager = torch.compile(find_cells)(x, size), find_cells(x, size)
print("other cells than eager, compiled:", int((compiled != eager).sum()), "of 1000, NumPy:",
      int((x.numpy() // size.numpy() != eager.numpy()).sum()))
print(f"{x[49]:g} // 0.1: compiled {compiled[49]}, eager {eager[49]}, Python {5.0 // 0.1:g};",
      f"remainder, compiled: {torch.compile(torch.remainder)(x, size)[49]:g}")
PYTHON
for name in generated cells; do
  "$work/venv/bin/python" -W ignore "$work/$name.py" "$work" 2>>"$work/messages"
done | tee "$work/seen"

expected='torch 2.13.0 triton 3.9.0
Triton for CUDA: triton.language.div_rn(tmp0, tmp1) libdevice.floor(tmp2)
other cells than eager, compiled: 446 of 1000, NumPy: 0
5 // 0.1: compiled 50, eager 49, Python 49; remainder, compiled: 0.0999999'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
