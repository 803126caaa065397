#!/usr/bin/env bash
# Guess: "Kernel uses TensorCore" of XProf's kernel statistics says whether a kernel uses tensor cores.
# What happens: it says whether the kernel's name has a part that older libraries used, as h884, h16816gemm or xmma_gemm.
# It is false for nvjet_..., the products of cuBLAS for Hopper and Blackwell, for CUTLASS 3's sm90_tensorop, and for
# gemm_fusion_dot, the products that XLA generates with Triton.
# Version: xprof 2.24.2, of a trace with these kernels as the CUDA tracer writes it. Seen on 1 December 2026.
# Why it matters: an H100 or B200 whose products all run on tensor cores seems not to use them, and the same model on an
# A100 does. What one changes next, layouts or types, changes nothing.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check xprof==2.24.2

cat >"$work/tensor_cores.py" <<'PYTHON'
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


DETAILS = "regs:128 static_shared:0 dynamic_shared:65536 grid:132,1,1 block:256,1,1 occ_pct:12.5"
KERNELS = (
    "volta_h884gemm_128x128_nn",
    "ampere_h16816gemm_128x64_nn",
    "sm90_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT",
    "nvjet_tst_128x128_64x4_1x2_h_bz_coopA",
    "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64",
    "gemm_fusion_dot_3",
    "ampere_sgemm_128x64_nn",
)

print("xprof", metadata.version("xprof"))
path = Path(sys.argv[1], "host.xplane.pb")
names = {1: "kernel_details", 2: "tf_op", 3: "device_vendor", 4: "compute_cap_major"}
events, metadatas = [], []
for i, kernel in enumerate(KERNELS, 1):
    stats = [encode((1, 1), (5, DETAILS)), encode((1, 2), (5, "jit(f)/dot_general:MatMul"))]
    events.append(encode((1, i), (2, i * 10**9), (3, 10**8), *((4, stat) for stat in stats)))
    metadatas.append(encode((1, i), (2, encode((1, i), (2, kernel)))))
plane = encode(
    (2, "/device:GPU:0"), (3, encode((1, 7), (2, "Stream #7"), *((4, event) for event in events))),
    *((4, kernel) for kernel in metadatas), *((5, encode((1, i), (2, encode((1, i), (2, names[i]))))) for i in names),
    (6, encode((1, 3), (5, "Nvidia"))), (6, encode((1, 4), (3, 9))),
)
path.write_bytes(encode((1, plane), (4, "host")))
text, _ = raw_to_tool_data.xspace_to_tool_data([str(path)], "kernel_stats", {})
table = json.loads(text)
columns = [column["label"] for column in table["cols"]]
rows = [dict(zip(columns, (cell["v"] for cell in row["c"]))) for row in table["rows"]]
for row in sorted(rows, key=lambda row: KERNELS.index(row["Kernel Name"])):
    print(f"{row['Kernel Name'][:48]}: {row['Kernel uses TensorCore']}")
PYTHON
"$work/venv/bin/python" "$work/tensor_cores.py" "$work" 2>/dev/null | tee "$work/seen"

expected='xprof 2.24.2
volta_h884gemm_128x128_nn: True
ampere_h16816gemm_128x64_nn: True
sm90_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize12: True
nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT: False
nvjet_tst_128x128_64x4_1x2_h_bz_coopA: False
cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f: False
gemm_fusion_dot_3: False
ampere_sgemm_128x64_nn: False'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
