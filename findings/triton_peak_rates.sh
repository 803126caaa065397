#!/usr/bin/env bash
# Guess: triton.testing.get_max_tensorcore_tflops() and get_max_simd_tflops() give a GPU's peak at a clock, as its data
# sheet does. So does the peak by which proton-viewer computes "util".
# What happens: every GPU from sm_80 on has an A100's rates per multiprocessor. Of float16 a B200 has a quarter of its
# peak, an H100 half, and an RTX 4090 twice its peak (four times with sums in float32). Of float32 all three have half.
# get_dram_gbps() is right. Proton takes an RTX 4090's peak for each GPU of sm_89, whatever its size: an RTX 4060 that
# runs at its peak has a utilization of 0.18.
# Version: Triton 3.9.0, with each GPU's number of multiprocessors and clocks. Seen on 30 November 2026.
# Why it matters: rooflines and "percent of peak" are wrong by a factor of 2 to 5. A kernel seems to pass the peak on an
# H100, and to be bound by memory on an RTX 4060.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" triton==3.9.0

cat >"$work/peaks.py" <<'PYTHON'
import sys
from types import SimpleNamespace

# PyTorch is asked for names of types and for the capability alone.
sys.modules["torch"] = torch = SimpleNamespace(**{name: name for name in
    ["float32", "float16", "bfloat16", "int32", "int16", "int8"]}, cuda=SimpleNamespace(current_device=lambda: 0))
import triton
from triton import testing
from triton.profiler import specs
from triton.runtime import driver

print("Triton", triton.__version__)
# capability, multiprocessors, MHz, dense float16 of tensor cores and float32 in TFLOPS, MHz and bits of memory, GB/s:
# data sheets, the rates at the clock given
gpus = {"A100": ((8, 0), 108, 1410, 312, 19.5, 1215, 5120, 1555), "H100": ((9, 0), 132, 1830, 989, 61.8, 2619, 5120, 3352),
        "B200": ((10, 0), 148, 1850, 2243, 70.1, 3996, 8192, 8184), "RTX 4090": ((8, 9), 128, 2520, 330, 82.6, 10501, 384, 1008)}
for name, (capability, multiprocessors, clock, half, single, memory_clock, width, bandwidth) in gpus.items():
    torch.cuda.get_device_capability = lambda device=None, value=capability: value
    properties = {"multiprocessor_count": multiprocessors, "mem_clock_rate": 1000 * memory_clock, "mem_bus_width": width}
    driver._active = SimpleNamespace(utils=SimpleNamespace(get_device_properties=lambda device, value=properties: value))
    print(f"{name}: float16 {testing.get_max_tensorcore_tflops('float16', 1000 * clock, 0):.0f} of {half}, "
          f"float32 {testing.get_max_simd_tflops('float32', 1000 * clock, 0):.1f} of {single} TFLOPS, "
          f"{testing.get_dram_gbps(0):.0f} of {bandwidth} GB/s")
for name, multiprocessors, clock in [("RTX 4090", 128, 2520), ("RTX 4060", 24, 2460)]:
    peak = specs.max_flops("CUDA", "89", 16, num_sms=multiprocessors, clock_rate=1000 * clock) / 1e12
    right = 165.2 * multiprocessors / 128 * clock / 2520
    print(f"Proton, {name}: float16 {peak:.1f} of {right:.1f} TFLOPS")
PYTHON
PYTHONPATH="$work/packages" python3 "$work/peaks.py" | tee "$work/seen"

expected='Triton 3.9.0
A100: float16 312 of 312, float32 19.5 of 19.5 TFLOPS, 1555 of 1555 GB/s
H100: float16 495 of 989, float32 30.9 of 61.8 TFLOPS, 3352 of 3352 GB/s
B200: float16 561 of 2243, float32 35.0 of 70.1 TFLOPS, 8184 of 8184 GB/s
RTX 4090: float16 661 of 330, float32 41.3 of 82.6 TFLOPS, 1008 of 1008 GB/s
Proton, RTX 4090: float16 165.2 of 165.2 TFLOPS
Proton, RTX 4060: float16 165.2 of 30.2 TFLOPS'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
