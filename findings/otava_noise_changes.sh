#!/usr/bin/env bash
# Guess, written after the first sign: of series of noise around one level, Otava reports a change in about 1 in 1000:
# `--p-value`, 0.001 by default, is "the probability that the change-point has been found by a random coincidence".
# What happens: in 1 of 36 if the series has 30 values, in 1 of 12 with 100 and in 1 of 9 with 200. Otava
# chooses the point that divides the values best, and then tests it by a t test, as a point chosen beforehand. The p-value
# that it prints is that of the t test.
# Version: apache-otava 0.8.0, NumPy 2.2.0, SciPy 1.16.3. Seen on 30 November 2026.
# Why it matters: of a suite of 100 GPU benchmarks whose kernels do not change, about 8 show a regression or an improvement
# after 100 commits, with p-values below 0.001. With max_pvalue=0.00001 none of 500 series of 100 values did.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --no-deps --target "$work/packages" apache-otava==0.8.0 numpy==2.2.0 scipy==1.16.3
export PYTHONPATH="$work/packages"

cat >"$work/count.py" <<'PYTHON'
import random
from importlib import metadata

from otava.analysis import compute_change_points

print("apache-otava", metadata.version("apache-otava"))
for length, p_value in ((30, 0.001), (100, 0.001), (200, 0.001), (100, 0.00001)):
    generator = random.Random(0)
    changes = 0
    for _ in range(500):
        series = [generator.gauss(100, 1) for _ in range(length)]
        points, _ = compute_change_points(series, max_pvalue=p_value)
        changes += bool(points)
    print(f"{length} values, max_pvalue {p_value:g}: {changes} of 500 series of noise change")
PYTHON
python3 "$work/count.py" | tee "$work/seen"

expected='apache-otava 0.8.0
30 values, max_pvalue 0.001: 14 of 500 series of noise change
100 values, max_pvalue 0.001: 41 of 500 series of noise change
200 values, max_pvalue 0.001: 58 of 500 series of noise change
100 values, max_pvalue 1e-05: 0 of 500 series of noise change'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
