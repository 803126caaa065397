#!/usr/bin/env bash
# Guess: tune_kernel() returns the best configuration by its objective, as `env["best_config"]`, whatever number that is:
# registers by RegisterObserver, or sectors and GB/s by a metric of one's own.
# What happens: only Python's and NumPy's 64-bit floats count. If the objective is an integer or a float32, the first
# configuration of the search space is "best": here the one with 40 registers, where another has 24, and the one with 8 GB/s
# of 32. int(...) in a metric decides.
# Version: kernel_tuner 1.5.0 in simulation mode, in which it reads measurements from its cache. Seen on 30 November 2026.
# Why it matters: exact counts are integers. The result is a valid configuration, so nothing looks wrong, and with
# quiet=False it is printed as "best performing configuration".
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" kernel_tuner==1.5.0 numpy==2.2.0 python-constraint2==2.9.0 pymoo==0.6.2
export PYTHONPATH="$work/packages"

cat >"$work/tune.py" <<'PYTHON'
import json
import sys
from importlib import metadata

import numpy as np
from kernel_tuner import tune_kernel

sizes = [32, 64, 128, 256]
times = {32: 1.0, 64: 0.5, 128: 0.25, 256: 0.3}
registers = {32: 40, 64: 32, 128: 64, 256: 24}
entries = {
    str(size): {"block_size_x": size, "time": times[size], "times": [times[size]] * 7, "num_regs": registers[size],
                "compile_time": 1.0, "verification_time": 0, "benchmark_time": 1.0, "strategy_time": 0.0,
                "framework_time": 0.0, "timestamp": "2026-11-30T00:00:00+00:00"}
    for size in sizes
}
cache = {"device_name": "GPU", "kernel_name": "copy", "problem_size": 1024, "tune_params_keys": ["block_size_x"],
         "tune_params": {"block_size_x": sizes}, "objective": "time", "cache": entries}
path = sys.argv[1] + "/cache.json"


def tune(objective, metric=None, **options):
    with open(path, "w") as file:
        json.dump(cache, file)
    metrics = {objective: metric} if metric else None
    results, environment = tune_kernel("copy", "__global__ void copy(float *a) {}", 1024, [np.zeros(1024, np.float32)],
                                       {"block_size_x": sizes}, lang="CUDA", simulation_mode=True, cache=path, quiet=True,
                                       objective=objective, metrics=metrics, **options)
    best = environment["best_config"]
    values = " ".join(f"{result['block_size_x']}: {result[objective]:g}," for result in results)
    print(f"{objective}, {type(best[objective]).__name__}: {values} best {best['block_size_x']}")


print("kernel_tuner", metadata.version("kernel_tuner"))
tune("time")
tune("num_regs", objective_higher_is_better=False)
tune("sectors", lambda p: 1000 * p["num_regs"], objective_higher_is_better=False)
tune("sectors", lambda p: 1000.0 * p["num_regs"], objective_higher_is_better=False)
tune("GB/s", lambda p: np.float32(8 / p["time"]))
tune("GB/s", lambda p: np.float64(8 / p["time"]))
PYTHON
python3 "$work/tune.py" "$work" 2>/dev/null | tee "$work/seen"

expected='kernel_tuner 1.5.0
time, float: 32: 1, 64: 0.5, 128: 0.25, 256: 0.3, best 128
num_regs, int: 32: 40, 64: 32, 128: 64, 256: 24, best 32
sectors, int: 32: 40000, 64: 32000, 128: 64000, 256: 24000, best 32
sectors, float: 32: 40000, 64: 32000, 128: 64000, 256: 24000, best 256
GB/s, float32: 32: 8, 64: 16, 128: 32, 256: 26.6667, best 32
GB/s, float64: 32: 8, 64: 16, 128: 32, 256: 26.6667, best 128'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
