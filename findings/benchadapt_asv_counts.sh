#!/usr/bin/env bash
# Guess, written after the first sign: benchadapt's AsvBenchmarkAdapter hands each result of asv to Conbench, with its
# unit, or says which it cannot.
# What happens: only results in seconds or bytes arrive, as its table of units has no other. A benchmark with another
# unit, as "sectors" or asv's default "unit", is left out without a word. So is every parameter from the first one that
# failed on: its null ends the loop, and the values of later parameters are lost.
# Version: benchadapt 2024.3.20, asv 0.6.6, asv_runner 0.3.2. Seen on 30 November 2026.
# Why it matters: exact counts of a GPU suite are track_ benchmarks with units of their own: none of them arrives, and
# nothing watches them. One dtype that fails on one commit removes the times of the others from that commit.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -qq asv==0.6.6 asv_runner==0.3.2 benchadapt==2024.3.20

mkdir -p "$work/project/benchmarks" "$work/home"
cd "$work/project"
touch benchmarks/__init__.py
cat >benchmarks/kernels.py <<'PYTHON'
def time_copy(dtype):
    if dtype == "float16":
        raise ValueError("no kernel of float16")
time_copy.params = ["float32", "float16", "float64", "int32"]
time_copy.param_names = ["dtype"]

def track_bytes():
    return 4096
track_bytes.unit = "bytes"

def track_sectors():
    return 128
track_sectors.unit = "sectors"

def track_conflicts():
    return 0
PYTHON
cat >asv.conf.json <<'JSON'
{"version": 1, "project": "kernels", "repo": ".", "branches": ["HEAD"], "environment_type": "existing"}
JSON
git init -q .
git add .
git -c user.name=a -c user.email=a@example.org commit -qm 'Watch kernels'
export HOME="$work/home"
"$work/venv/bin/asv" machine --yes >"$work/log" 2>&1
# float16 fails, and so the exit code is not 0.
"$work/venv/bin/asv" run --quick -E existing:same --set-commit-hash "$(git rev-parse HEAD)" >>"$work/log" 2>&1 || true

REPOSITORY=org/kernels "$work/venv/bin/python" - <<'PYTHON' 2>/dev/null | tee "$work/seen"
import json
from importlib.metadata import version
from pathlib import Path

from benchadapt.adapters import AsvBenchmarkAdapter

print("benchadapt", version("benchadapt") + ", asv", version("asv"))
(path,) = Path("results").glob("*/*-existing*.json")
for name, (values, *_) in sorted(json.loads(path.read_text())["results"].items()):
    states = ["null" if value is None else value if name != "kernels.time_copy" else "a time" for value in values]
    print(f"stored: {name}: {states}")
adapter = AsvBenchmarkAdapter(command=["true"], result_file=path, benchmarks_file_path=Path("results"))
for result in sorted(adapter.run(), key=lambda result: result.tags["name"]):
    print("arrives:", result.tags["name"], result.tags.get("dtype", ""), result.stats["unit"])
PYTHON

expected="benchadapt 2024.3.20, asv 0.6.6
stored: kernels.time_copy: ['a time', 'null', 'a time', 'a time']
stored: kernels.track_bytes: [4096]
stored: kernels.track_conflicts: [0]
stored: kernels.track_sectors: [128]
arrives: kernels.time_copy 'float32' s
arrives: kernels.track_bytes  B"
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
