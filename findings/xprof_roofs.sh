#!/usr/bin/env bash
# Guess, written after the first number: the peaks of XProf's roofline model are those of the GPU in the trace. Shared
# memory gives 32 banks of 4 bytes a clock on each multiprocessor, as the CUDA programming guide says since Maxwell.
# What happens: "SHM/L1" has a peak of 256 bytes a clock, on every GPU: twice what there is. Each multiprocessor of an RTX
# 5090 has the tensor cores of a B200: 3352 TFLOP/s, where NVIDIA's data sheet says 419 (dense, float16 with float16 sums). The peak of
# device memory and the other rates are right.
# Version: xprof 2.24.2, of a trace with one kernel and the capabilities that the CUDA tracer writes. Seen on
# 1 December 2026.
# Why it matters: a kernel that is limited by shared memory or bank conflicts stands at half of its roof and seems to
# have room. On an RTX 5090 a kernel needs 1871 operations a byte to count as bound by compute; 234 are right.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check xprof==2.24.2

cat >"$work/roofs.py" <<'PYTHON'
import json
import sys
from importlib import metadata
from pathlib import Path

from xprof.convert import raw_to_tool_data


def encode(*fields):
    """Encode (number, value) pairs as a protocol buffer."""
    message = b""
    for number, value in fields:
        if isinstance(value, int):
            message += encode_varint(number << 3) + encode_varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            message += encode_varint(number << 3 | 2) + encode_varint(len(value)) + value
    return message


def encode_varint(value):
    digits = []
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    return bytes([*digits, value])


def write_trace(path, capabilities):
    """Write an XSpace with one kernel on a GPU of these capabilities."""
    names = [encode((1, i), (2, encode((1, i), (2, name)))) for i, name in enumerate(capabilities)]
    values = [encode((1, i), (5 if isinstance(value, str) else 3, value)) for i, value in enumerate(capabilities.values())]
    kernel = encode((1, 1), (2, 0), (3, 10**8))
    plane = encode(
        (2, "/device:GPU:0"), (3, encode((1, 7), (2, "Stream #7"), (4, kernel))),
        (4, encode((1, 1), (2, encode((1, 1), (2, "kernel"))))), *((5, name) for name in names), *((6, value) for value in values),
    )
    path.write_bytes(encode((1, plane), (4, "host")))


def print_roofs(gpu, cores, megahertz, gigabytes, major, minor):
    path = Path(sys.argv[1], gpu.replace(" ", "_"), "host.xplane.pb")
    path.parent.mkdir()
    write_trace(path, {
        "core_count": cores, "clock_rate": megahertz * 1000, "memory_bandwidth": gigabytes * 10**9, "memory_size": 80 << 30,
        "compute_cap_major": major, "compute_cap_minor": minor, "device_vendor": "Nvidia",
    })
    text, _ = raw_to_tool_data.xspace_to_tool_data([str(path)], "roofline_model", {})
    peaks = json.loads(text)[0]["p"]
    memory, shared = (float(peaks[f"peak_{name}_bw"]) * 2**30 for name in ("hbm", "vmem_write"))
    print(f"{gpu}: {float(peaks['peak_flop_rate']) / 1000:.0f} TFLOP/s, memory {memory / 1e9:.0f} GB/s, "
          f"shared {shared / (cores * megahertz * 1e6):.0f} bytes a clock, ridge {float(peaks['hbm_ridge_point']):.0f}")


print("xprof", metadata.version("xprof"))
print_roofs("V100", 80, 1530, 900, 7, 0)
print_roofs("A100", 108, 1410, 1555, 8, 0)
print_roofs("RTX 4090", 128, 2520, 1008, 8, 9)
print_roofs("H100", 132, 1830, 3352, 9, 0)
print_roofs("B200", 148, 1965, 8000, 10, 0)
print_roofs("RTX 5090", 170, 2407, 1792, 12, 0)
PYTHON
"$work/venv/bin/python" "$work/roofs.py" "$work" 2>/dev/null | tee "$work/seen"

expected='xprof 2.24.2
V100: 125 TFLOP/s, memory 900 GB/s, shared 256 bytes a clock, ridge 139
A100: 312 TFLOP/s, memory 1555 GB/s, shared 256 bytes a clock, ridge 201
RTX 4090: 330 TFLOP/s, memory 1008 GB/s, shared 256 bytes a clock, ridge 328
H100: 989 TFLOP/s, memory 3352 GB/s, shared 256 bytes a clock, ridge 295
B200: 2382 TFLOP/s, memory 8000 GB/s, shared 256 bytes a clock, ridge 298
RTX 5090: 3352 TFLOP/s, memory 1792 GB/s, shared 256 bytes a clock, ridge 1871'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
