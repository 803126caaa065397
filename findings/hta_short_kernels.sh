#!/usr/bin/env bash
# Guess: the kernel breakdown of Holistic Trace Analysis gives the durations that PyTorch's profiler
# wrote, to its resolution of a nanosecond.
# What happens: a kernel's start is rounded up to a microsecond and its end down, so it loses 1 µs on
# average. Kernels of 2.6 µs have a mean of 1.6, and of 0.8 µs one of -0.2: durations become 0 and -1.
# A warning at loading speaks of "rounding down ns resolution events". The table and its share of time
# do not. With HTA_DISABLE_NS_ROUNDING=1 durations stay as they are.
# Version: HolisticTraceAnalysis 0.5.0, pandas 3.1.1. Seen on 30 November 2026.
# Why it matters: kernels of small arrays take 1 to 5 µs. They seem faster by 20 to 100 %, and the
# shortest make the total smaller. The GPU seems to be idle for these times.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" HolisticTraceAnalysis==0.5.0 pandas==3.1.1 numpy==2.4.6 \
  plotly==7.1.0 narwhals==2.29.0 psutil==7.2.2 packaging==26.4 python-dateutil==2.9.0.post0 six==1.17.0
echo "HolisticTraceAnalysis $(python3 -m pip list --path "$work/packages" 2>/dev/null | awk '/HolisticTrace/ { print $2 }')"

cat >"$work/break_down.py" <<'PYTHON'
import json
import logging
import sys

from hta.trace_analysis import TraceAnalysis

logging.disable()
events = [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0.0, "dur": 9000.0, "args": {"External id": 1}}]
number = 0
for name, duration in {"add": 0.8, "transpose": 2.6, "matmul": 100.6}.items():
    for _ in range(10):  # starts of all tenths of a microsecond
        number += 1
        start = 200 * number + number / 10 + 0.05
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start - 5,
                       "dur": 2.5, "args": {"correlation": number}})
        events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": duration,
                       "args": {"stream": 7, "correlation": number, "device": 0}})
path = sys.argv[1] + "/trace.json"
with open(path, "w") as file:
    json.dump({"schemaVersion": 1, "distributedInfo": {"rank": 0}, "traceEvents": events}, file)

analysis = TraceAnalysis(trace_files={0: path})
for _, row in analysis.get_gpu_kernel_breakdown(visualize=False, duration_ratio=1.0)[1].iterrows():
    print(f"{row['name']}: sum {row['sum (us)']:.1f}, mean {row['mean (us)']:.1f}, min {row['min (us)']:.1f}, max {row['max (us)']:.1f} us")
PYTHON
export PYTHONPATH="$work/packages"
{
  echo 'default'
  python3 "$work/break_down.py" "$work" 2>/dev/null
  echo 'without rounding'
  HTA_DISABLE_NS_ROUNDING=1 python3 "$work/break_down.py" "$work" 2>/dev/null
} | tee "$work/seen"

expected='default
add: sum -2.0, mean -0.2, min -1.0, max 0.0 us
matmul: sum 996.0, mean 99.6, min 99.0, max 100.0 us
transpose: sum 16.0, mean 1.6, min 1.0, max 2.0 us
without rounding
add: sum 8.0, mean 0.8, min 0.8, max 0.8 us
matmul: sum 1006.0, mean 100.6, min 100.6, max 100.6 us
transpose: sum 26.0, mean 2.6, min 2.6, max 2.6 us'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
