#!/usr/bin/env bash
# Guess, written after the first sign: `asv compare` leaves a value that did not change unmarked. It marks one that grew
# by more than the factor with +.
# What happens: of negative values, one that did not change is marked as an improvement, with ratio 1. So is one that
# grew by 5 %, from -100 to -95; -100 to -50 is worse, with ratio 0.5. asv divides by the factor, which brings a
# negative value closer to zero. With `--factor 1` the marks are right.
# Version: asv 0.6.6, asv_runner 0.3.2.
# Why it matters: differences are negative at times, such as of counted and expected sectors, or of two kernels. Each
# line of such a benchmark is marked each time, and `--only-changed` lists all of them.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" asv==0.6.6 asv_runner==0.3.2
export PYTHONPATH="$work/packages"
PATH="$work/packages/bin:$PATH"
# asv notes the machine in the home folder.
export HOME="$work"

mkdir -p "$work/project/benchmarks"
cd "$work/project"
git init -q -b main .
git config user.name finding
git config user.email finding@example.org
echo results >.gitignore
cat >benchmarks/sectors.py <<'PYTHON'
import json
from pathlib import Path

VALUES = json.loads(Path(__file__).with_name("values.json").read_text())

def track_difference(case):
    return VALUES[case]

track_difference.params = list(VALUES)
PYTHON
touch benchmarks/__init__.py
echo '{"version": 1, "repo": ".", "branches": ["main"], "environment_type": "existing"}' >asv.conf.json
asv machine --yes --machine host >"$work/log" 2>&1

# record VALUES: a commit whose benchmark returns these values
record() {
  echo "$1" >benchmarks/values.json
  git add .
  git commit -qm "Change the values"
  asv run -E existing:same --set-commit-hash "$(git rev-parse HEAD)" >>"$work/log" 2>&1
}
record '{"positive, equal": 100, "negative, equal": -100, "negative, grows": -100, "negative, grows much": -100}'
record '{"positive, equal": 100, "negative, equal": -100, "negative, grows": -95, "negative, grows much": -50}'

# compare FACTOR: mark, before, after, ratio and name of each line
compare() {
  echo "--factor $1:"
  asv compare --factor "$1" HEAD~ HEAD | sed -nE "s/ +/ /g; s/^\| (.*) \| .*\('(.*)'\) \|/\2 | \1/p"
}
{
  asv --version
  compare 1.1
  compare 1
} | tee "$work/seen"

expected='asv 0.6.6
--factor 1.1:
negative, equal | - | -100 | -100 | 1
negative, grows much | + | -100 | -50 | 0.5
negative, grows | - | -100 | -95 | 0.95
positive, equal | | 100 | 100 | 1
--factor 1:
negative, equal | | -100 | -100 | 1
negative, grows much | + | -100 | -50 | 0.5
negative, grows | + | -100 | -95 | 0.95
positive, equal | | 100 | 100 | 1'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
