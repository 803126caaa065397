#!/usr/bin/env bash
# Guess: x.at[i].add(u) of floats adds with one atomic instruction, as CUDA's atomicAdd() does, in float32 first of all.
# What happens: float64, float16, bfloat16 and integers are one instruction. float32 is a loop of load and
# compare-and-swap. Its sum keeps subnormals, which atom.add.f32 in global memory flushes. All have the scope of the
# system, not of the GPU. The loop is reported as a regression: issue 46225 of openxla/xla.
# Version: JAX and jaxlib 0.10.2, their plug-in for CUDA 13, compiled ahead of time for sm_90, which needs no GPU.
# Why it matters: the number of accesses of a scatter, a histogram or the gradient of an embedding depends on how often
# indices repeat, and on luck. Who measures float32 measures another kernel than with float64.
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
    """Compile a function of arrays, given by dtype and shape; print the accesses of the kernel that scatters."""
    for old in dump.glob("*"):
        old.unlink()
    arguments = [jax.ShapeDtypeStruct(shape, dtype, sharding=sharding) for dtype, *shape in types]
    jax.jit(function).lower(*arguments).compile()
    ptx = "".join(path.read_text() for path in dump.glob("*.ptx"))
    kernel = re.search(r"\.entry input_scatter_fusion\(.*?\n}", ptx, re.DOTALL)[0]
    print(f"{label}:", *re.findall(r"\b(?:ld(?!\.param|\.global\.nc)|atom|red)\.\S+", kernel))

jax.config.update("jax_enable_x64", True)
print("jax", jax.__version__)
for dtype in "int32", "float16", "bfloat16", "float32", "float64":
    types = (dtype, 2**16), ("int32", 2**14), (dtype, 2**14)
    show_accesses(dtype, lambda x, i, u: x.at[i].add(u), *types)
PYTHON
"$work/venv/bin/python" "$work/show_accesses.py" "$work/dump" 2>"$work/log" | tee "$work/seen"

expected='jax 0.10.2
int32: atom.relaxed.sys.global.add.u32
float16: atom.relaxed.sys.global.add.noftz.f16
bfloat16: atom.relaxed.sys.global.add.noftz.bf16
float32: ld.relaxed.sys.global.b32 atom.relaxed.sys.global.cas.b32
float64: atom.relaxed.sys.global.add.f64'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
