#!/usr/bin/env bash
# Guess: nvbench-compare-legacy, NVBench's script nvbench_compare.py, lists under each GPU the times of that GPU. NVBench
# measures on all GPUs unless told otherwise.
# What happens: it lists all GPUs' times under each. With two GPUs each row stands twice, once under the wrong name, and
# the summary counts four matches, two of them failures. The first heading says that the GPUs are compared with each
# other. Rows do not say their GPU. nvbench-compare-robust lists each time once.
# Version: cuda-bench 0.3.0. Seen on 30 November 2026.
# Why it matters: a table for one GPU shows the other one's times as well, and a regression of one GPU is reported for
# both. Nothing distinguishes the rows.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" cuda-bench==0.3.0 numpy==2.3.5 tabulate==0.9.0 \
  colorama==0.4.6 jsondiff==2.2.1 pyyaml==6.0.3
echo "cuda-bench $(python3 -m pip list --path "$work/packages" 2>/dev/null | awk '/cuda-bench/ { print $2 }')"

cat >"$work/write.py" <<'PYTHON'
import json
import sys

def write_results(path, times):
    def summarize(tag, value):
        return {"tag": f"nv/cold/time/gpu/{tag}", "name": tag, "data": [{"name": "value", "type": "float64", "value": value}]}

    states = [{"name": f"Device={gpu} Length=1024", "device": gpu, "type_config_index": 0, "min_samples": 10, "min_time": 0.5,
               "axis_values": [{"name": "Length", "type": "int64", "value": "1024"}], "is_skipped": False,
               "summaries": [summarize("mean", time), summarize("stdev/relative", "0.01")]} for gpu, time in enumerate(times)]
    axes = [{"name": "Length", "type": "int64", "flags": "", "values": [{"value": 1024}]}]
    devices = [{"id": 0, "name": "H200"}, {"id": 1, "name": "RTX 5090"}]
    version = {"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"}
    document = {"meta": {"version": {"json": version}}, "devices": devices[: len(times)],
                "benchmarks": [{"name": "copy", "index": 0, "devices": list(range(len(times))), "axes": axes, "states": states}]}
    with open(path, "w") as file:
        json.dump(document, file)

write_results(sys.argv[1] + "/base.json", ["0.001", "0.002"])
write_results(sys.argv[1] + "/head.json", ["0.001", "0.003"])
PYTHON
python3 "$work/write.py" "$work"
for tool in nvbench_compare nvbench_compare_robust; do
  echo "$tool"
  # The exit code is the number of failures.
  { PYTHONPATH="$work/packages" python3 -m cuda.bench.scripts.$tool --no-color "$work/base.json" "$work/head.json" || true; } |
    grep -E '^(## |. +1024 |- Total)' | sed 's/|  *1024  *|//; s/[^ -~]//g; s/  */ /g; s/ *| */ | /g; s/ |  | / | | /; s/ | $//; s/^ //'
done | tee "$work/seen"

expected='nvbench_compare
## [1] RTX 5090 vs. [0] H200
1.000 ms | 1.00% | 1.000 ms | 1.00% | 0.000 us | 0.00% | SAME
2.000 ms | 1.00% | 3.000 ms | 1.00% | 1.000 ms | 50.00% | SLOW
## [1] RTX 5090
1.000 ms | 1.00% | 1.000 ms | 1.00% | 0.000 us | 0.00% | SAME
2.000 ms | 1.00% | 3.000 ms | 1.00% | 1.000 ms | 50.00% | SLOW
- Total Matches: 4
nvbench_compare_robust
## [0] H200
1.000 ms [-10, +10] us | 1.000 ms [-10, +10] us | | SAME
## [1] RTX 5090
2.000 ms [-20, +20] us | 3.000 ms [-30, +30] us | | AMBG
- Total Matches: 2'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
