#!/usr/bin/env bash
# Guess: `proton-viewer -m gbyte/s --exclude sum` shows the rate of a scope without the kernels named sum, as
# `-m bytes --exclude sum` shows its bytes without them. time/ms is time (ns) in another unit.
# What happens: time and bytes of a scope are of the kernels that are left, but each metric that is derived from them,
# time/ms and gbyte/s among them, still contains the kernels that are gone. 1 GB in 1 ms of one copy is shown as 200 GB/s,
# and as 10 ms. --include is alike.
# Version: proton-viewer of Triton 3.9.0, llnl-hatchet 2026.2.0, which needs no GPU. Seen on 30 November 2026.
# Why it matters: one leaves out warm-up or another stream's kernels to read a scope's bandwidth, and reads that of all
# kernels. The tree below it shows other numbers, which do not add up to it.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq --disable-pip-version-check triton==3.9.0 llnl-hatchet==2026.2.0 \
  pandas==2.3.3 numpy==2.4.6

# A profile as Proton writes it: a scope with a copy of 1 GB in 1 ms and a sum of 1 GB in 9 ms
cat >"$work/profile.hatchet" <<'JSON'
[{"frame": {"name": "ROOT", "type": "function"}, "metrics": {"bytes": 0, "count": 0, "time (ns)": 0}, "children": [
  {"frame": {"name": "layer", "type": "function"}, "metrics": {}, "children": [
    {"frame": {"name": "copy", "type": "function"}, "children": [], "metrics":
      {"bytes": 1000000000, "count": 1, "time (ns)": 1000000, "device_id": "0", "device_type": "CUDA"}},
    {"frame": {"name": "sum", "type": "function"}, "children": [], "metrics":
      {"bytes": 1000000000, "count": 1, "time (ns)": 9000000, "device_id": "0", "device_type": "CUDA"}}]}]},
 {"CUDA": {"0": {"arch": "90", "bus_width": 5120, "clock_rate": 1980000, "memory_clock_rate": 2619000, "num_sms": 132}}}]
JSON

{
  "$work/venv/bin/python" -m pip list --disable-pip-version-check 2>"$work/messages" | grep -E '^(triton|llnl-hatchet)' | xargs
  for options in '' '-e sum' '-i copy'; do
    for metric in time time/ms bytes gbyte/s; do
      # shellcheck disable=SC2086 # an option and its value, or nothing
      line=$("$work/venv/bin/proton-viewer" -m $metric $options "$work/profile.hatchet" 2>>"$work/messages" | grep -w layer)
      echo "-m $metric $options: $(echo "$line" | grep -oE '[0-9.]+ layer')"
    done
  done
} | tee "$work/seen"

expected='llnl-hatchet 2026.2.0 triton 3.9.0
-m time : 10000000.000 layer
-m time/ms : 10.000 layer
-m bytes : 2000000000.000 layer
-m gbyte/s : 200.000 layer
-m time -e sum: 1000000.000 layer
-m time/ms -e sum: 10.000 layer
-m bytes -e sum: 1000000000.000 layer
-m gbyte/s -e sum: 200.000 layer
-m time -i copy: 1000000.000 layer
-m time/ms -i copy: 10.000 layer
-m bytes -i copy: 1000000000.000 layer
-m gbyte/s -i copy: 200.000 layer'
[ "$(cat "$work/seen")" = "$expected" ] || { cat "$work/messages" >&2; echo 'the behaviour changed' >&2; exit 1; }
