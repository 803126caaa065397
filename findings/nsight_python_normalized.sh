#!/usr/bin/env bash
# Guess: with normalize_against="baseline" Nsight Python divides a row's statistics by the baseline's mean, so that the
# mean lies between the row's minimum and maximum, and in its confidence interval.
# What happens: AvgValue alone is divided. StdDev, MinValue, MaxValue and both ends of the interval stay as measured, and
# Unit is still ns. The baseline's row reads 1.0 ns, with an interval from 9.77 to 10.23.
# Version: nsight-python 1.1.0. Seen on 30 November 2026.
# Why it matters: a comparison of two rows by their intervals compares times, and by their means ratios. A check that a
# mean is in its interval fails for each row, or passes by chance.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -qq nsight-python==1.1.0 numpy==2.3.5 pandas==2.3.3
echo "nsight-python $("$work/venv/bin/python" -m pip list 2>/dev/null | awk '/nsight-python/ { print $2 }')"

cat >"$work/normalize.py" <<'PYTHON'
import pandas as pd
from nsight.transformation import aggregate_data
from nsight.utils import VerbosityLevel

def copy(length):
    """Stand for the function that nsight.analyze.kernel decorates."""

MEASURED = {
    ("baseline", "gpu__time_duration.sum", "ns"): [10.0, 10.2, 9.8],
    ("padded", "gpu__time_duration.sum", "ns"): [5.0, 5.1, 4.9],
}
rows = [{"Annotation": annotation, "Metric": metric, "Value": value, "Unit": unit, "length": 1024}
        for (annotation, metric, unit), values in MEASURED.items() for value in values]
for baseline in [None, "baseline"]:
    print("normalized against", baseline)
    for row in aggregate_data(pd.DataFrame(rows), copy, baseline, VerbosityLevel.SILENT).itertuples():
        inside = row.CI95_Lower <= row.AvgValue <= row.CI95_Upper
        print(f"  {row.Annotation} {row.Metric}: {row.AvgValue:.2f} {row.Unit}, from {row.MinValue:.2f} to {row.MaxValue:.2f},",
              f"interval {row.CI95_Lower:.2f} to {row.CI95_Upper:.2f}", "holds the mean" if inside else "does not hold it")
PYTHON
"$work/venv/bin/python" "$work/normalize.py" | tee "$work/seen"

expected='normalized against None
  baseline gpu__time_duration.sum: 10.00 ns, from 9.80 to 10.20, interval 9.77 to 10.23 holds the mean
  padded gpu__time_duration.sum: 5.00 ns, from 4.90 to 5.10, interval 4.89 to 5.11 holds the mean
normalized against baseline
  baseline gpu__time_duration.sum: 1.00 ns, from 9.80 to 10.20, interval 9.77 to 10.23 does not hold it
  padded gpu__time_duration.sum: 0.50 ns, from 4.90 to 5.10, interval 4.89 to 5.11 does not hold it'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
