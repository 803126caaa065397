#!/usr/bin/env bash
# Guess: XLA transposes through a tile in shared memory, so that loads and stores coalesce. Small elements are loaded
# and stored several at once.
# What happens: matrices of 8 columns have a tile, those of 3 or 4 none: a thread loads from four rows. For 3 columns
# its loads are 12 bytes apart, and those of neighbouring lanes 48. A request then touches 32 sectors for the bytes of
# 4. A tile of int8 is loaded 4 bytes at once, but stored byte by byte, 4 bytes apart: each sector four times.
# Version: JAX and jaxlib 0.10.2, their plug-in for CUDA 13, compiled ahead of time for sm_90, which needs no GPU.
# Why it matters: images of 3 channels that become channels first take the first path, at 8 times the sectors of a
# coalesced load. A transpose of int8 makes as many store requests as one of float32, for a quarter of the bytes.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
pip="$work/venv/bin/python -m pip install -qq --disable-pip-version-check"
$pip jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
$pip --no-deps jax-cuda13-plugin==0.10.2 jax-cuda13-pjrt==0.10.2
# The plug-in is loaded, though the process itself computes on a CPU.
export JAX_PLATFORMS=cpu XLA_FLAGS="--xla_dump_to=$work/dump"

cat >"$work/show_accesses.py" <<'PYTHON'
import re
import sys
from pathlib import Path

import jax
from jax.experimental import topologies

TARGET = """
platform_name: "CUDA" device_description_str: "H100" runtime_version { major: 13 } dnn_version_info { major: 9 }
gpu_device_info {
  threads_per_warp: 32 threads_per_block_limit: 1024 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 clock_rate_ghz: 1.98
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  registers_per_core_limit: 65536 registers_per_block_limit: 65536 cuda_compute_capability { major: 9 }
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 device_memory_size: 84929347584
}
"""
topology = topologies.get_topology_desc(platform="cuda", target_config=TARGET, topology="1x1x1")
mesh = topologies.make_mesh(topology, (1,), ("device",))
sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
dump = Path(sys.argv[1])

def show_accesses(label, function, *types):
    """Compile a function of arrays, given by dtype and shape; print the accesses of its only kernel."""
    for old in dump.glob("*"):
        old.unlink()
    arguments = [jax.ShapeDtypeStruct(shape, dtype, sharding=sharding) for dtype, *shape in types]
    jax.jit(function).lower(*arguments).compile()
    ptx = "".join(path.read_text() for path in dump.glob("*.ptx"))
    accesses = re.findall(r"\b(?:ld|st)\.(?:global|shared)\S+", re.search(r"\.entry.*?\n}", ptx, re.DOTALL)[0])
    print(f"{label}:", ", ".join(f"{accesses.count(name)} {name}" for name in dict.fromkeys(accesses)))

print("jax", jax.__version__)
for dtype, *shape in (
    ("float32", 1024, 1024),
    ("float32", 2**20, 8),
    ("float32", 2**20, 4),
    ("float32", 2**20, 3),
    ("bfloat16", 1024, 1024),
    ("int8", 1024, 1024),
):
    show_accesses(f"{dtype} {shape}", lambda x: x.T, (dtype, *shape))
show_accesses("uint8 images", lambda x: x.transpose(0, 3, 1, 2), ("uint8", 8, 224, 224, 3))
PYTHON
"$work/venv/bin/python" "$work/show_accesses.py" "$work/dump" 2>"$work/log" | tee "$work/seen"

expected='jax 0.10.2
float32 [1024, 1024]: 8 ld.global.nc.b32, 8 st.shared.b32, 8 ld.shared.b32, 8 st.global.b32
float32 [1048576, 8]: 8 ld.global.nc.b32, 8 st.shared.b32, 2 ld.shared.b32, 2 st.global.b32
float32 [1048576, 4]: 4 ld.global.nc.b32, 1 st.global.v4.b32
float32 [1048576, 3]: 4 ld.global.nc.b32, 1 st.global.v4.b32
bfloat16 [1024, 1024]: 16 ld.global.nc.b32, 32 st.shared.b16, 32 ld.shared.b16, 2 st.global.v2.b16, 28 st.global.b16
int8 [1024, 1024]: 32 ld.global.nc.b32, 128 st.shared.b8, 32 ld.shared.b8, 32 st.global.b8
uint8 images: 4 ld.global.nc.b8, 1 st.global.b32'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
