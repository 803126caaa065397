#!/usr/bin/env bash
# Guess: pyperf knows the unit "byte", so it compares two counts of bytes as counts: exact values that differ are a
# significant difference, and twice as many bytes are "more".
# What happens: values that do not vary make the significance test print "ERROR when testing if values are
# significant", twice the bytes are "2.00x slower", and `pyperf stats` adds the bytes up as seconds: five runs of 1000
# bytes have a "Total duration" of 1 hour 23 min. Each command exits with 0.
# Version: pyperf 2.11.0.
# Why it matters: traffic, spills and allocated bytes are exact numbers, so their spread is 0. That is the case
# which the comparison takes for an error.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" pyperf==2.11.0
export PYTHONPATH="$work/packages"
python3 -c 'import pyperf; print("pyperf", pyperf.__version__)'

cat >"$work/store.py" <<'PYTHON'
import sys
import pyperf

# Five runs of one value, as of a kernel's traffic that was counted five times.
name, count = sys.argv[1], int(sys.argv[2])
metadata = {"name": "kernel_traffic", "unit": "byte"}
runs = [pyperf.Run([count], metadata=metadata, collect_metadata=False) for _ in range(5)]
pyperf.Benchmark(runs).dump(name)
PYTHON
cd "$work"
python3 store.py before.json 1000
python3 store.py after.json 2000

{
  python3 -m pyperf compare_to before.json after.json 2>&1
  python3 -m pyperf stats before.json | grep duration
} | tee seen
grep -q '1000 bytes.* -> .*2000 bytes.*: 2.00x slower' seen &&
  grep -q 'ERROR when testing if values are significant' seen &&
  grep -q 'Total duration: 1 hour 23 min' seen ||
  { echo 'the behaviour changed' >&2; exit 1; }
