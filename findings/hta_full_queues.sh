#!/usr/bin/env bash
# Guess: get_time_spent_blocked_on_full_queue() of Holistic Trace Analysis has the time for which each stream's launch
# queue was full: "blocked time per stream and rank", as its documentation says.
# What happens: it has a row per rank, of the last stream alone whose queue was full. Others are overwritten. Here stream
# 7 is full for 1980 us, half of the trace, and stream 20 for 95 us. The table says 95 us and 2.4 %.
# Version: HolisticTraceAnalysis 0.5.0, pandas 3.1.1. Seen on 30 November 2026.
# Why it matters: whether the CPU waits for the GPU is what one asks here. The main stream has the lowest number, so its
# row is the first to be lost. Nothing is raised.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" HolisticTraceAnalysis==0.5.0 pandas==3.1.1 numpy==2.4.6 \
  plotly==7.1.0 narwhals==2.29.0 psutil==7.2.2 packaging==26.4 python-dateutil==2.9.0.post0 six==1.17.0
echo "HolisticTraceAnalysis $(python3 -m pip list --path "$work/packages" 2>/dev/null | awk '/HolisticTrace/ { print $2 }')"

cat >"$work/analyse.py" <<'PYTHON'
import json
import logging
import sys

from hta.trace_analysis import TraceAnalysis

logging.disable()
events = [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0, "dur": 9000, "args": {"External id": 1}}]


def launch(number, launched, started, duration, stream):
    events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": launched, "dur": 2,
                   "args": {"correlation": number}})
    events.append({"ph": "X", "cat": "kernel", "name": "add", "pid": 0, "tid": stream, "ts": started, "dur": duration,
                   "args": {"stream": stream, "correlation": number, "device": 0}})


for i in range(4):  # stream 7 has long kernels, stream 20 short ones
    launch(10 + i, 10 * i, 1000 + 1000 * i, 900, 7)
    launch(20 + i, 5 + 10 * i, 100 + 20 * i, 10, 20)
path = sys.argv[1] + "/trace.json"
with open(path, "w") as file:
    json.dump({"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": events}, file)

analysis = TraceAnalysis(trace_files={0: path})
queues = analysis.get_queue_length_time_series(ranks=[0])
for stream, queue in queues[0].groupby("stream"):
    times = queue.ts.shift(-1) - queue.ts
    print(f"its queue lengths, stream {stream}: 3 or more for {times[queue.queue_length >= 3].sum():.0f} us")
for row in analysis.get_time_spent_blocked_on_full_queue(queues, max_queue_length=3).itertuples():
    print(f"its table: rank {row.rank}, stream {row.stream}, {row.duration_at_max_queue_length:.0f} us, "
          f"{row.relative_duration_at_max_queue_length:.1%} of the trace")
PYTHON
PYTHONPATH="$work/packages" python3 "$work/analyse.py" "$work" 2>/dev/null | tee "$work/seen"

expected='its queue lengths, stream 7: 3 or more for 1980 us
its queue lengths, stream 20: 3 or more for 95 us
its table: rank 0, stream 20, 95 us, 2.4% of the trace'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
