#!/usr/bin/env bash
# Guess: `atomic_add(counts_ref, (bins,), ones)` of int32 in a Pallas kernel is an addition of integers: a histogram.
# What happens: `atom.add.f32`, an addition of floats to the integers' bits. Small integers are subnormal floats, which
# an atomic of global memory takes as 0: each count stays 0. int64 is added as float64. A scalar is added as an integer.
# `interpret=True` on a CPU adds integers, but equal bins of a block once: 4 is counted for 16.
# Version: JAX and jaxlib 0.10.2, their plug-in for CUDA 13, Pallas by Triton, compiled ahead of time for sm_90, which
# needs no GPU. The source of 0.12.0.1, for newer Pythons than 3.11, asks for the element's type.
# Why it matters: a wrong result without an error, of the kernel that atomics are made for. A benchmark of it measures
# float atomics, which ptxas does not sum in the warp first as it does integers (ptxas_aggregates_atomics).
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
pip="$work/venv/bin/python -m pip install -qq --disable-pip-version-check"
$pip jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
$pip --no-deps jax-cuda13-plugin==0.10.2 jax-cuda13-pjrt==0.10.2
# The plug-in is loaded, though the process itself computes on a CPU.
export JAX_PLATFORMS=cpu XLA_FLAGS="--xla_dump_to=$work/dump"

cat >"$work/show_atomics.py" <<'PYTHON'
import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental import topologies
from jax.experimental.pallas import triton

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
jax.config.update("jax_enable_x64", True)

def add_ones(bins_ref, _, counts_ref):
    triton.atomic_add(counts_ref, (bins_ref[...],), jnp.ones(1024, counts_ref.dtype))

def add_sum(bins_ref, _, counts_ref):
    triton.atomic_add(counts_ref, (0,), jnp.sum(bins_ref[...]).astype(counts_ref.dtype))

def make_call(body, dtype, interpret=False):
    counts = pl.BlockSpec((256,), lambda i: (0,))
    options = {"grid": (4,), "compiler_params": triton.CompilerParams(num_warps=4), "interpret": interpret}
    specs = {"in_specs": [pl.BlockSpec((1024,), lambda i: (i,)), counts], "out_specs": counts}
    return pl.pallas_call(body, jax.ShapeDtypeStruct((256,), dtype), input_output_aliases={1: 0}, **specs, **options)

def find_atomics(body, dtype):
    for old in dump.glob("*"):
        old.unlink()
    shapes = [jax.ShapeDtypeStruct(*shape, sharding=sharding) for shape in (((4096,), "int32"), ((256,), dtype))]
    jax.jit(make_call(body, dtype)).lower(*shapes).compile()
    return " ".join(sorted(set(re.findall(r"atom\.\S+", "".join(path.read_text() for path in dump.glob("*.ptx"))))))

print("jax", jax.__version__)
for body, dtype in (add_ones, "int32"), (add_ones, "int64"), (add_sum, "int32"):
    print(f"{body.__name__} {dtype}: {find_atomics(body, dtype)}")
counts = make_call(add_ones, "int32", interpret=True)(jnp.arange(4096, dtype="int32") % 256, jnp.zeros(256, "int32"))
print("interpreted:", sorted(set(counts.tolist())))
PYTHON
"$work/venv/bin/python" "$work/show_atomics.py" "$work/dump" 2>"$work/log" | tee "$work/seen"

expected='jax 0.10.2
add_ones int32: atom.global.gpu.acq_rel.add.f32
add_ones int64: atom.global.gpu.acq_rel.add.f64
add_sum int32: atom.global.gpu.acq_rel.add.u32
interpreted: [4]'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
