#!/usr/bin/env bash
# Guess: get_memory_bw_summary() of Holistic Trace Analysis gives the bandwidth of a trace's copies.
# Copies that do not overlap have their own as maximum, and the mean is bytes over time of copying.
# What happens: the statistics are of the points where a running sum changes. Of copies that begin
# when another ends, the end may be subtracted after the start is added. Ten such copies at 24.7 GB/s
# have a mean of 34.9 and a maximum of 49.4. A copy of 1 ms at 25 GB/s counts as much as one of 2 µs
# at 1 GB/s: with nine such copies the mean is 3.4 where 24.6 is right. After copies that overlapped,
# the sum is not exactly 0 between copies. What rounding left counts as bandwidth: the mean is 13.5
# where 23.4 is right.
# Version: HolisticTraceAnalysis 0.5.0, pandas 3.1.1. Seen on 30 November 2026.
# Why it matters: no link copies twice as fast as each of its copies. Chunks that follow each other on
# a stream are usual, and times are rounded to 1 µs.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" HolisticTraceAnalysis==0.5.0 pandas==3.1.1 numpy==2.4.6 \
  plotly==7.1.0 narwhals==2.29.0 psutil==7.2.2 packaging==26.4 python-dateutil==2.9.0.post0 six==1.17.0
echo "HolisticTraceAnalysis $(python3 -m pip list --path "$work/packages" 2>/dev/null | awk '/HolisticTrace/ { print $2 }')"

cat >"$work/summarize.py" <<'PYTHON'
import json
import logging
import sys

from hta.trace_analysis import TraceAnalysis

logging.disable()


def write_trace(path, copies):
    """Write copies (start in us, duration in us, GB/s, stream) as PyTorch's profiler writes them."""
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::copy_", "pid": 1, "tid": 1, "ts": 0, "dur": 9000, "args": {"External id": 1}}]
    for number, (start, duration, bandwidth, stream) in enumerate(copies):
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 1, "tid": 1, "ts": start - 5, "dur": 2,
                       "args": {"correlation": number}})
        events.append({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": stream,
                       "ts": start, "dur": duration,
                       "args": {"stream": stream, "correlation": number, "device": 0, "bytes": int(bandwidth * 1000 * duration),
                                "memory bandwidth (GB/s)": bandwidth}})
    with open(path, "w") as file:
        json.dump({"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": events}, file)


traces = {
    "adjacent": [(1000 + 100 * i, 100, 24.7, 7) for i in range(10)],
    "of two lengths": [(1000, 1000, 25.0, 7)] + [(3000 + 20 * i, 2, 1.0, 7) for i in range(9)],
    "two overlapping, eight apart": [(100, 100, 24.7, 7), (150, 100, 11.9, 20)] + [(1000 + 200 * i, 100, 24.7, 7) for i in range(8)],
}
for name, copies in traces.items():
    path = sys.argv[1] + "/trace.json"
    write_trace(path, copies)
    row = TraceAnalysis(trace_files={0: path}).get_memory_bw_summary()["memory_bw_gbps"].iloc[0]
    time = sum(duration for _, duration, _, _ in copies)
    right = sum(bandwidth * duration for _, duration, bandwidth, _ in copies) / time
    print(f"{name}: count {row['count']:.0f}, mean {row['mean']:.1f}, median {row['50%']:.1f}, maximum {row['max']:.1f}; "
          f"{len(copies)} copies, bytes over time {right:.1f}, maximum {max(copy[2] for copy in copies)}")
PYTHON
PYTHONPATH="$work/packages" python3 "$work/summarize.py" "$work" 2>/dev/null | tee "$work/seen"

expected='adjacent: count 17, mean 34.9, median 24.7, maximum 49.4; 10 copies, bytes over time 24.7, maximum 24.7
of two lengths: count 10, mean 3.4, median 1.0, maximum 25.0; 10 copies, bytes over time 24.6, maximum 25.0
two overlapping, eight apart: count 20, mean 13.5, median 18.3, maximum 36.6; 10 copies, bytes over time 23.4, maximum 24.7'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
