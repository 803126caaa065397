#!/usr/bin/env bash
# Guess: the small graph of asv's first page, which summarises a benchmark's parameters, rises if a value rises.
# What happens: it is the geometric mean over the parameters. If one of them is 0 the graph is 0 throughout: here
# spilled bytes grow from 64 to 640 at one tile size, and the summary stays a flat line at 0.
# Version: asv 0.6.6, asv_runner 0.3.2.
# Why it matters: times are never 0, but counts of GPU memory often are: bank conflicts, spills, atomics. 0 is their
# best value. One parameter at its best hides the regressions of all others on the first page.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" asv==0.6.6 asv_runner==0.3.2
export PYTHONPATH="$work/packages"

cat >"$work/summarise.py" <<'PYTHON'
import asv
from asv.graph import Graph, make_summary_graph

print("asv", asv.__version__)

def summarise(spilled_by_commit):
    graph = Graph("track_spilled_bytes", {"machine": "host"})
    for revision, spilled in enumerate(spilled_by_commit):
        graph.add_data_point(revision, spilled)
    return [point[1] for point in make_summary_graph([graph]).get_data()]

# The values are of tile sizes 16 and 32.
print("16: 8, 32: 64 to 640:", [round(value, 1) for value in summarise([[8.0, 64.0], [8.0, 640.0]])])
print("16: 0, 32: 64 to 640:", [round(value, 1) for value in summarise([[0.0, 64.0], [0.0, 640.0]])])
PYTHON
python3 "$work/summarise.py" | tee "$work/seen"

expected='asv 0.6.6
16: 8, 32: 64 to 640: [22.6, 71.6]
16: 0, 32: 64 to 640: [0.0, 0.0]'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
