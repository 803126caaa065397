#!/usr/bin/env bash
# Guess: a track_ benchmark may return NumPy's integers as Python's: a count that np.sum() made is a number.
# What happens: it fails. Of NumPy's scalars only float64 is stored, since it is a float of Python. int64, float32 and
# an array without dimensions are stored as null, and shown as "failed".
# Version: asv 0.6.6, asv_runner 0.3.2, NumPy 2.4.6.
# Why it matters: counts of memory accesses are sums of integers, mostly NumPy's. The benchmark runs to its end, and its
# number is lost. int() around the result mends it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check asv==0.6.6 asv_runner==0.3.2 numpy==2.4.6 virtualenv

mkdir -p "$work/project/benchmarks" "$work/home"
cd "$work/project"
touch benchmarks/__init__.py
cat >benchmarks/counts.py <<'PYTHON'
import numpy as np

sectors = np.full(32, 4)

def track_int():
    return int(sectors.sum())

def track_int64():
    return sectors.sum()

def track_float32():
    return np.float32(sectors.sum())

def track_float64():
    return sectors.mean()

def track_array():
    return np.array(sectors.sum())
PYTHON
cat >asv.conf.json <<'JSON'
{"version": 1, "project": "counts", "repo": ".", "branches": ["HEAD"], "environment_type": "existing"}
JSON
git init -q .
git add .
git -c user.name=a -c user.email=a@example.org commit -qm 'Count sectors'
export HOME="$work/home"
"$work/venv/bin/asv" machine --yes >"$work/log" 2>&1
"$work/venv/bin/asv" run -E existing:same --set-commit-hash "$(git rev-parse HEAD)" >>"$work/log" 2>&1 || true

seen=$("$work/venv/bin/python" - <<'PYTHON'
import json
from importlib.metadata import version
from pathlib import Path

(path,) = Path("results").glob("*/*-existing*.json")
results = json.loads(path.read_text())["results"]
print("asv", version("asv"))
for name in sorted(results):
    print(f"{name}: {results[name][0]}")
PYTHON
)
expected='asv 0.6.6
counts.track_array: None
counts.track_float32: None
counts.track_float64: [4.0]
counts.track_int: [128]
counts.track_int64: None'

echo "stored results:"
echo "$seen"
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
