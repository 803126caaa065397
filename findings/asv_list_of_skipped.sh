#!/usr/bin/env bash
# Guess: asv's page "Benchmark list" has a row for each configuration that has a result. One that `setup` skips, by
# NotImplementedError, has none.
# What happens: a row is written for each combination of the parameters. Skipped ones have no value, and the page sorts
# rows by name: here the first two of four rows are blank. No setting leaves them out.
# Version: asv 0.6.6, asv_runner 0.3.2.
# Why it matters: a GPU suite sweeps kernels by dtype, and few kernels take each dtype. Its list opens with blank rows.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" asv==0.6.6 asv_runner==0.3.2
export PYTHONPATH="$work/packages"
PATH="$work/packages/bin:$PATH"
# asv notes the machine in the home folder.
export HOME="$work"
asv --version

mkdir -p "$work/project/benchmarks"
cd "$work/project"
git init -q -b main .
git config user.name finding
git config user.email finding@example.org
cat >benchmarks/memory.py <<'PYTHON'
class Kernels:
    param_names = ["kernel", "dtype"]
    params = [["add", "copy"], ["complex128", "int8"]]

    def setup(self, kernel, dtype):
        if kernel == "add":
            raise NotImplementedError

    def track_bytes(self, kernel, dtype):
        return 16.0
PYTHON
touch benchmarks/__init__.py
printf '{"version": 1, "repo": ".", "branches": ["main"], "environment_type": "existing",
  "benchmark_dir": "benchmarks", "results_dir": "results", "html_dir": "html"}' >asv.conf.json
git add . && git commit -qm kernels
{ asv machine --yes --machine host && asv run --machine host -E "existing:$(command -v python3)" \
    --set-commit-hash "$(git rev-parse HEAD)" --quick && asv publish; } >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

python3 - <<'PYTHON' | tee "$work/seen"
import json
from pathlib import Path

(path,) = Path("html/graphs").rglob("summary.json")
for row in sorted(json.loads(path.read_text()), key=lambda row: row["pretty_name"]):
    print(row["pretty_name"], row["last_value"])
PYTHON

expected="memory.Kernels.track_bytes('add', 'complex128') None
memory.Kernels.track_bytes('add', 'int8') None
memory.Kernels.track_bytes('copy', 'complex128') 16.0
memory.Kernels.track_bytes('copy', 'int8') 16.0"
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
