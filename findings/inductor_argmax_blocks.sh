#!/usr/bin/env bash
# Guess: torch.compile runs `x.argmax()` of 16,777,216 floats on the whole GPU, as `x.amax()` and `x.sum()`.
# What happens: sum, amax, var and others are cut into 512 pieces, and a second kernel joins these. argmax, argmin and
# the `max(dim)` that returns indices have one block a row: here one block reads all elements.
# Version: torch 2.13.0 for CPUs, Triton 3.9.0. Inductor generates for CUDA, whose questions have an H100's answers.
# There is one configuration, so nothing is autotuned. Seen on 1 December 2026.
# Why it matters: one of an H100's 132 multiprocessors reads, at best some hundredth of the bandwidth, and its access is
# perfectly coalesced: counts of sectors are the same. The greedy choice of a token, `logits.argmax(-1)`, is one block a
# token.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check torch==2.13.0 triton==3.9.0 numpy==2.4.6
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TORCHINDUCTOR_CACHE_DIR="$work/inductor" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/blocks.py" <<'PYTHON'
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

print("torch", torch.__version__.split("+")[0], "triton", triton.__version__)
for label, function, *shape in (
    ("sum", torch.sum, 2**24),
    ("amax", torch.amax, 2**24),
    ("var", torch.var, 2**24),
    ("argmax", torch.argmax, 2**24),
    ("argmin", torch.argmin, 2**24),
    ("amax of 151936 logits", lambda x: x.amax(-1), 1, 151936),
    ("argmax of 151936 logits", lambda x: x.argmax(-1), 1, 151936),
    ("max of 151936 logits", lambda x: x.max(-1).indices, 1, 151936),
):
    kernel, source = next(generate_kernels(function, torch.empty(shape)))
    rows, elements = re.search(r"xnumel = (\d+)\n    r0_numel = (\d+)", source).groups()
    blocks = -(-int(rows) // kernel.configs[0].kwargs.get("XBLOCK", 1))
    print(f"{label}: {blocks} blocks of {32 * kernel.configs[0].num_warps} threads, {elements} elements each")
PYTHON
"$work/venv/bin/python" -W ignore "$work/blocks.py" "$work" 2>"$work/messages" | tee "$work/seen"

expected='torch 2.13.0 triton 3.9.0
sum: 512 blocks of 512 threads, 32768 elements each
amax: 512 blocks of 512 threads, 32768 elements each
var: 512 blocks of 512 threads, 32768 elements each
argmax: 1 blocks of 512 threads, 16777216 elements each
argmin: 1 blocks of 512 threads, 16777216 elements each
amax of 151936 logits: 19 blocks of 512 threads, 7997 elements each
argmax of 151936 logits: 1 blocks of 512 threads, 151936 elements each
max of 151936 logits: 1 blocks of 512 threads, 151936 elements each'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
