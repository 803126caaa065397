#!/usr/bin/env bash
# Guess: torch.compile reads `x[:, 1:]`, and both terms of a difference of neighbours, with neighbouring lanes at
# neighbours, as 16 bytes a lane are not possible there: a load of 128 bytes touches 4 or 5 sectors.
# What happens: as the store has 16 bytes a lane, each lane owns four neighbours, and loads them one by one. Lanes of a
# load are 16 bytes apart: 16 sectors for 128 bytes, and four such loads. Views that begin at a multiple of 16 bytes
# have one.
# Version: torch 2.13.0 for CPUs, Triton 3.9.0. Inductor generates for CUDA, whose questions have an H100's answers;
# compiled for sm_90, in the first configuration. Seen on 1 December 2026.
# Why it matters: a difference makes four times the requests and sectors of `x + 1`, though each row is read in order.
# By a count of the PTX `x[:, 1:] * 2` of 64 rows of 1025 loads 33,792 sectors, and stores 8192.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check torch==2.13.0 triton==3.9.0 numpy==2.4.6
export HOME="$work" TRITON_CACHE_DIR="$work/cache" TORCHINDUCTOR_CACHE_DIR="$work/inductor" TRITON_DEFAULT_FP_FUSION=1

cat >"$work/rows.py" <<'PYTHON'
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

def describe_load(kernel, source, size=4):
    """Describe the first load of the first warp by instruction, layout and the index in the source."""
    asm = compile_kernel(kernel)
    bits = int(re.search(r"ld\.global\S*\.b(\d+) ", asm["ptx"])[1])
    words = int((re.search(r"ld\.global\S*\.v(\d)", asm["ptx"]) or "11")[1])
    name = re.search(r"tt\.load .*!tt\.ptr<\w+>, (#\w+)>", asm["ttgir"])[1]
    text = re.search(rf"^{name} = (.*)", asm["ttgir"], re.MULTILINE)[1]
    layout = {key: [int(n) for n in numbers.split(",")] for key, numbers in re.findall(r"(\w+) = \[(.*?)\]", text)}
    rows = int((re.search(r"ynumel = (\d+)", source) or "11")[1])
    sectors = set()
    for lane in range(32):
        values = {"yindex": 0}
        for axis in layout["order"]:
            lane, place = divmod(lane, layout["threadsPerWarp"][axis])
            values["yx"[axis - len(layout["order"])] + "index"] = place * layout["sizePerThread"][axis]
        for variable, expression in re.findall(r"^    ([xy]\d) = (.*)$", source, re.MULTILINE):
            values[variable] = eval(expression, {}, values)
        address = size * eval(re.search(r"tl\.load\(in_ptr0 \+ \((.*?)\), ", source)[1], {}, values)
        if values["yindex"] < rows:
            sectors |= {(address + byte) // 32 for byte in range(words * bits // 8)}
    return f"{words * bits // 8} bytes a lane, {len(sectors)} sectors"

print("torch", torch.__version__.split("+")[0], "triton", triton.__version__)
for label, function, *shape in (
    ("x + 1", lambda x: x + 1, 64, 1024),
    ("x[:, 4:] + 1", lambda x: x[:, 4:] + 1, 64, 1028),
    ("x[:, 1:] + 1", lambda x: x[:, 1:] + 1, 64, 1025),
    ("x[:, 1:] - x[:, :-1]", lambda x: x[:, 1:] - x[:, :-1], 64, 1025),
    ("x.roll(-1, 1)", lambda x: x.roll(-1, 1), 64, 1024),
    ("x.flip(1)", lambda x: x.flip(1), 64, 1024),
):
    ((kernel, source),) = generate_kernels(function, torch.zeros(shape))
    print(f"{label}: {describe_load(kernel, source)}")
PYTHON
"$work/venv/bin/python" -W ignore "$work/rows.py" "$work" 2>"$work/messages" | tee "$work/seen"

expected='torch 2.13.0 triton 3.9.0
x + 1: 16 bytes a lane, 16 sectors
x[:, 4:] + 1: 16 bytes a lane, 17 sectors
x[:, 1:] + 1: 4 bytes a lane, 16 sectors
x[:, 1:] - x[:, :-1]: 4 bytes a lane, 16 sectors
x.roll(-1, 1): 4 bytes a lane, 16 sectors
x.flip(1): 4 bytes a lane, 16 sectors'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
