#!/usr/bin/env bash
# Guess: the utilization that nsys-ai prints of a profile of Nsight Systems is the part of the time in which a kernel
# ran: 100 % minus the idle time beside it.
# What happens: it is the sum of all kernels' durations, divided by the span. Overlapping kernels of several streams count
# several times; idle_ms is right. Here three streams run kernels for the same 3 of each 10 ms. It says 96.8 %
# utilization, and two sentences later 63 ms of idle gaps, 68 % of the span. With nine streams it is 290.3 %.
# Version: nsys-ai 0.3.0. Seen on 30 November 2026.
# Why it matters: a program that uses several streams looks busy while the GPU waits. The text is made for language
# models, by its code, and nothing in it says which number to take.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" nsys-ai==0.3.0
export PYTHONPATH="$work/packages"

cat >"$work/summarize.py" <<'PYTHON'
import sqlite3
import sys
from importlib import metadata

from nsys_ai.profile import Profile
from nsys_ai.summary import auto_commentary, gpu_summary

TABLES = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, mangledName INTEGER, gridX INTEGER,
  gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER,
  staticSharedMemory INTEGER, dynamicSharedMemory INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, text TEXT, globalTid INTEGER,
  endGlobalTid INTEGER, textId INTEGER);
INSERT INTO StringIds VALUES (1, 'copy');
"""


def summarize(streams):
    """Print nsys-ai's summary of 10 periods of 10 ms, with a kernel of 3 ms in each stream."""
    path = f"{sys.argv[1]}/{streams}.sqlite"
    with sqlite3.connect(path) as profile:
        profile.executescript(TABLES)
        kernels = [(10_000_000 * period, 10_000_000 * period + 3_000_000, stream, streams * period + stream)
                   for period in range(10) for stream in range(streams)]
        profile.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, ?, ?, 0, 1, 1, 1, "
                            "132, 1, 1, 256, 1, 1, 32, 0, 0)", kernels)
    summary = gpu_summary(Profile(path), 0)
    print(f"{streams} streams: {summary['timing']}")
    print("\n".join(sentence for sentence in auto_commentary(summary).split(". ") if "bottleneck" not in sentence))


print("nsys-ai", metadata.version("nsys-ai"))
for streams in (1, 3, 9):
    summarize(streams)
PYTHON
python3 "$work/summarize.py" "$work" 2>/dev/null | tee "$work/seen"

expected="nsys-ai 0.3.0
1 streams: {'span_ms': 93.0, 'compute_ms': 30.0, 'idle_ms': 63.0, 'utilization_pct': 32.3}
GPU 0 ran 10 kernels over 93ms with 32.3% utilization
There are 63ms of idle gaps (68% of span).
3 streams: {'span_ms': 93.0, 'compute_ms': 90.0, 'idle_ms': 63.0, 'utilization_pct': 96.8}
GPU 0 ran 30 kernels over 93ms with 96.8% utilization
There are 63ms of idle gaps (68% of span).
9 streams: {'span_ms': 93.0, 'compute_ms': 270.0, 'idle_ms': 63.0, 'utilization_pct': 290.3}
GPU 0 ran 90 kernels over 93ms with 290.3% utilization
There are 63ms of idle gaps (68% of span)."
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
