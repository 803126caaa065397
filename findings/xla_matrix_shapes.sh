#!/usr/bin/env bash
# Guess: how x + 1 of a contiguous float32 array is read depends on the number of its elements alone. XLA loads 16 bytes
# a thread. Where a length or an offset forbids that, it loads 4 bytes, neighbouring lanes at neighbouring elements.
# What happens: 1,001,000 elements are read 16 bytes at once as (1001000,) and as (10, 100, 1001). As (1000, 1001) they
# are read by four loads of 4 bytes. A thread keeps its four neighbours, so the lanes of each load are 16 bytes apart:
# 16 sectors a request instead of 4. (1000, 1002) is read so, too. (1000, 1000) and (512, 1001) are not: four divides
# the rows of one, and the other fills whole blocks. (1001, 1001) has a thread for each element, and coalesces.
# Flattening changes nothing. A slice from an offset of run time is read by four loads, too; the fifth reads the offset.
# Version: JAX and jaxlib 0.10.2, their plug-in for CUDA 13, compiled ahead of time for sm_90, which needs no GPU.
# Why it matters: one more column can make four times the requests and sectors, without an index in the program. A
# matrix of (1000, 1002) touches four times the sectors of one of (1001, 1001).
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
    accesses = re.findall(r"\b(?:ld|st)\.global\S+", re.search(r"\.entry.*?\n}", ptx, re.DOTALL)[0])
    print(f"{label}:", ", ".join(f"{accesses.count(name)} {name}" for name in dict.fromkeys(accesses)))

print("jax", jax.__version__)
for shape in (1001000,), (10, 100, 1001), (1000, 1001), (1000, 1002), (1000, 1000), (512, 1001), (1001, 1001):
    show_accesses(f"x + 1 of {shape}", lambda x: x + 1, ("float32", *shape))
show_accesses("x.ravel() + 1 of (1000, 1001)", lambda x: x.ravel() + 1, ("float32", 1000, 1001))
cut = lambda x, i: jax.lax.dynamic_slice(x, (i,), (2**20,))
show_accesses("dynamic_slice of 2**20", cut, ("float32", 2**21), ("int32",))
PYTHON
"$work/venv/bin/python" "$work/show_accesses.py" "$work/dump" 2>"$work/log" | tee "$work/seen"

expected='jax 0.10.2
x + 1 of (1001000,): 1 ld.global.nc.v4.b32, 1 st.global.v4.b32
x + 1 of (10, 100, 1001): 1 ld.global.nc.v4.b32, 1 st.global.v4.b32
x + 1 of (1000, 1001): 4 ld.global.nc.b32, 4 st.global.b32
x + 1 of (1000, 1002): 4 ld.global.nc.b32, 4 st.global.b32
x + 1 of (1000, 1000): 1 ld.global.nc.v4.b32, 1 st.global.v4.b32
x + 1 of (512, 1001): 1 ld.global.nc.v4.b32, 1 st.global.v4.b32
x + 1 of (1001, 1001): 1 ld.global.nc.b32, 1 st.global.b32
x.ravel() + 1 of (1000, 1001): 4 ld.global.nc.b32, 4 st.global.b32
dynamic_slice of 2**20: 5 ld.global.nc.b32, 1 st.global.v4.b32'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
