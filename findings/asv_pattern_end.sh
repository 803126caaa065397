#!/usr/bin/env bash
# Guess: a key of `regressions_thresholds` is a pattern for a benchmark's name. "memory.track_bytes$" sets the threshold
# of that benchmark and of no longer name, such as memory.track_bytes_read.
# What happens: the pattern is matched against the name, its parameters and "@branch" together. A pattern that ends in
# "$" therefore matches nothing, without a warning, and the default of 5 % holds. "memory.track_bytes@" works.
# Version: asv 0.6.6, asv_runner 0.3.2.
# Why it matters: a threshold that someone raised for a noisy GPU benchmark has no effect, and nothing says so.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" asv==0.6.6 asv_runner==0.3.2
export PYTHONPATH="$work/packages"
PATH="$work/packages/bin:$PATH"
# asv notes the machine in the home folder.
export HOME="$work"
asv --version

# A repository of eight commits: bytes double in the fifth.
mkdir -p "$work/project/benchmarks"
cd "$work/project"
git init -q -b main .
git config user.name finding
git config user.email finding@example.org
printf 'results\nhtml\n' >.gitignore
cat >benchmarks/memory.py <<'PYTHON'
from pathlib import Path

def track_bytes():
    return float(Path(__file__).with_name("bytes").read_text())
PYTHON
touch benchmarks/__init__.py

# configure PATTERN: a step of anything below 1000 % is no regression
configure() {
  printf '{"version": 1, "repo": ".", "branches": ["main"], "environment_type": "existing",
    "benchmark_dir": "benchmarks", "results_dir": "results", "html_dir": "html",
    "regressions_thresholds": {"%s": 10.0}}' "$1" >asv.conf.json
}
configure unused
asv machine --yes --machine host >"$work/log" 2>&1
for bytes in 100 101 102 103 200 201 202 203; do
  echo "$bytes" >benchmarks/bytes
  git add . && git commit -qm "$bytes bytes"
  asv run --machine host -E "existing:$(command -v python3)" --set-commit-hash "$(git rev-parse HEAD)" --quick \
    >>"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
done

for pattern in 'memory.track_bytes' 'memory.track_bytes$' 'memory.track_bytes@'; do
  configure "$pattern"
  asv publish >>"$work/log" 2>&1
  echo "$pattern: $(grep -o '"memory.track_bytes"' html/regressions.json | wc -l) regressions"
done | tee "$work/seen"

expected='memory.track_bytes: 0 regressions
memory.track_bytes$: 1 regressions
memory.track_bytes@: 0 regressions'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
