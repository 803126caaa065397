#!/usr/bin/env bash
# Guess: torch.compile sums a few rows of 151,936 bfloat16 (the vocabulary of Qwen) with vectors, as rows of 131,072 or
# 128,256: a row begins at a multiple of 64 bytes.
# What happens: each row is cut into 19 pieces of 7997 elements, for enough blocks. Pieces begin at odd elements, so a
# lane loads 2 bytes at once. Rows of 131,072 are cut into 16 pieces of 8192, with 8 bytes a lane.
# Version: torch 2.13.0 for CPUs, Triton 3.9.0. Inductor generates for CUDA, whose questions have an H100's answers;
# compiled for sm_90. There is one configuration, so nothing is autotuned. Seen on 1 December 2026.
# Why it matters: sums, maxima and softmaxes of logits make four times the requests for the same bytes, in decoding,
# where rows are few. By a count of the PTX: 19,000 requests and 54,984 sectors for 4 rows, where 37,984 sectors hold
# them. A padded vocabulary does not help: 50,304, which is GPT-2's 50,257 at a multiple of 64, is 7 pieces of 7187.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check torch==2.13.0 triton==3.9.0 numpy==2.4.6
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TORCHINDUCTOR_CACHE_DIR="$work/inductor" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/sums.py" <<'PYTHON'
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
from triton.compiler import ASTSource

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

def compile_kernel(kernel):
    """Compile the first configuration for sm_90."""
    meta, configuration = kernel.triton_meta, kernel.configs[0]
    constants = {(i,): configuration.kwargs[n] for i, n in enumerate(meta["signature"]) if n in configuration.kwargs}
    source = ASTSource(kernel.fn, meta["signature"], constants, meta["configs"][0])
    return triton.compile(source, target=target, options={"num_warps": configuration.num_warps}).asm

print("torch", torch.__version__.split("+")[0], "triton", triton.__version__)
for rows, columns in (4, 131072), (4, 128256), (4, 151936), (4, 152064), (8, 151936), (512, 151936), (8, 50304):
    kernel, source = next(generate_kernels(lambda x: x.sum(-1), torch.zeros(rows, columns, dtype=torch.bfloat16)))
    pieces, length = re.search(r"xnumel = (\d+)\n    r0_numel = (\d+)", source).groups()
    load = re.search(r"ld\.global\S*?\.((?:v\d\.)?b\d+) ", compile_kernel(kernel)["ptx"])[1]
    print(f"{rows} rows of {columns}: {pieces} pieces of {length}, {len(kernel.configs)} configuration, loads {load}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/sums.py" "$work" 2>"$work/messages" | tee "$work/seen"

expected='torch 2.13.0 triton 3.9.0
4 rows of 131072: 64 pieces of 8192, 1 configuration, loads v2.b32
4 rows of 128256: 64 pieces of 8016, 1 configuration, loads v2.b32
4 rows of 151936: 76 pieces of 7997, 1 configuration, loads b16
4 rows of 152064: 76 pieces of 8004, 1 configuration, loads v2.b32
8 rows of 151936: 152 pieces of 7997, 1 configuration, loads b16
512 rows of 151936: 512 pieces of 151936, 1 configuration, loads v2.b32
8 rows of 50304: 56 pieces of 7187, 1 configuration, loads b16'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
