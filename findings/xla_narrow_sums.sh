#!/usr/bin/env bash
# Guess: XLA sums the columns of a row-major float32 matrix with full warps, also if it has few columns: neighbouring
# lanes read neighbouring elements, as for the sum of all elements.
# What happens: for 2, 4 and 8 columns they do. For 3 columns, 3 lanes of a warp of 32 read, one row a request: 10.7
# times the requests, and 3.3 times the sectors. For 7 columns, 7 lanes read. The other lanes of these warps are idle.
# Version: JAX and jaxlib 0.10.2, their plug-in for CUDA 13, compiled ahead of time for sm_90, which needs no GPU.
# Why it matters: a mean of images over all but their 3 channels takes this kernel. Sectors per request do not show it:
# they are 1.25. Requests and active lanes do.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
pip="$work/venv/bin/python -m pip install -qq --disable-pip-version-check"
$pip jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
$pip --no-deps jax-cuda13-plugin==0.10.2 jax-cuda13-pjrt==0.10.2
# The plug-in is loaded, though the process itself computes on a CPU.
export JAX_PLATFORMS=cpu XLA_FLAGS="--xla_dump_to=$work/dump"

cat >"$work/count_requests.py" <<'PYTHON'
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

def count_requests(columns):
    """Compile the column sums of 2**20 rows; print the warps' loads of the first kernel, which has no loop."""
    for old in dump.glob("*"):
        old.unlink()
    matrix = jax.ShapeDtypeStruct((2**20, columns), "float32", sharding=sharding)
    jax.jit(lambda x: x.sum(0)).lower(matrix).compile()
    ptx, launches = ("".join(path.read_text() for path in dump.glob(name)) for name in ("*.ptx", "*sequence.txt"))
    grid, block = (int(re.search(rf"001: .* {what}: \[(\d+), 1, 1\]", launches)[1]) for what in ("grid", "threads"))
    kernel = re.search(r"\.entry input_reduce_fusion\(.*?\n}", ptx, re.DOTALL)[0]
    loads = re.findall(r"ld\.global\S+", kernel)
    (load,) = set(loads)
    requests, width = grid * block // 32 * len(loads), 2 if ".v2" in load else 1
    lanes = 2**20 * columns / width / requests
    print(f"{columns} columns: {requests} requests {load}, {lanes:g} lanes each")

print("jax", jax.__version__)
for columns in 2, 3, 4, 7, 8:
    count_requests(columns)
PYTHON
"$work/venv/bin/python" "$work/count_requests.py" "$work/dump" 2>"$work/log" | tee "$work/seen"

expected='jax 0.10.2
2 columns: 65536 requests ld.global.nc.b32, 32 lanes each
3 columns: 1048576 requests ld.global.nc.b32, 3 lanes each
4 columns: 131072 requests ld.global.nc.b32, 32 lanes each
7 columns: 1048576 requests ld.global.nc.b32, 7 lanes each
8 columns: 131072 requests ld.global.nc.v2.b32, 32 lanes each'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
