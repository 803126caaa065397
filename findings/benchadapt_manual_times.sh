#!/usr/bin/env bash
# Guess: benchadapt's GoogleBenchmarkAdapter, which hands results of Google Benchmark to Conbench, takes the manual time of
# a benchmark with UseManualTime(), as Google Benchmark itself does for iterations and rates. Its JSON has that time as
# real_time.
# What happens: it takes cpu_time, the time of the thread that launches and waits. Only names with "/real_time"
# get real_time, and a benchmark of manual time is named "/manual_time". A kernel of 430 ns is reported with 61 us. The
# field "times" has 430, beside a "data" of 61000; Conbench plots and compares "data".
# Version: benchadapt 2024.3.20. Seen on 30 November 2026.
# Why it matters: GPU benchmarks use UseManualTime() with CUDA events. What is watched is the launch's overhead: a kernel
# that becomes ten times slower, to 4.3 us, changes nothing.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" benchadapt==2024.3.20
export PYTHONPATH="$work/packages" CONBENCH_PROJECT_REPOSITORY=org/kernels CONBENCH_PROJECT_COMMIT=abc

cat >"$work/adapt.py" <<'PYTHON'
import json
import sys
from importlib import metadata

from benchadapt.adapters import GoogleBenchmarkAdapter

path = sys.argv[1] + "/result.json"


def adapt(kernel_time):
    """Write a result of Google Benchmark, and print what the adapter makes of it."""
    benchmarks = [
        {"name": name, "run_name": name, "run_type": "iteration", "repetitions": 1, "repetition_index": 0, "threads": 1,
         "iterations": 1000, "real_time": real_time, "cpu_time": 61000.0, "time_unit": "ns"}
        for name, real_time in (("copy/4096/manual_time", kernel_time), ("copy/4096/real_time", 70000.0))
    ]
    with open(path, "w") as file:
        json.dump({"context": {}, "benchmarks": benchmarks}, file)
    fields = {"run_reason": "commit"}
    for result in GoogleBenchmarkAdapter(command=["true"], result_file=path, result_fields_override=fields).run():
        print(f"kernel of {kernel_time:g} ns, {result.tags['params']}: data {result.stats['data']} {result.stats['unit']}, "
              f"times {result.stats['times']}")


print("benchadapt", metadata.version("benchadapt"))
adapt(430.0)
adapt(4300.0)
PYTHON
python3 "$work/adapt.py" "$work" 2>/dev/null | tee "$work/seen"

expected='benchadapt 2024.3.20
kernel of 430 ns, 4096/manual_time: data [61000.0] ns, times [430.0]
kernel of 430 ns, 4096/real_time: data [70000.0] ns, times [70000.0]
kernel of 4300 ns, 4096/manual_time: data [61000.0] ns, times [4300.0]
kernel of 4300 ns, 4096/real_time: data [70000.0] ns, times [70000.0]'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
