#!/usr/bin/env bash
# Guess: in exact counts, equal at each commit but for one change, asv finds the step, however small it is: there is no
# noise to confuse it with.
# What happens: steps below a part of the value are not found, whatever the threshold. Of 20 commits before and 20 after,
# one in 1,000 is found and one in 10,000 is not: asv takes all 40 as one level at the mean, a count that no commit has.
# Of 5 and 5, one in 100 is found and one in 1,000 is not.
# Version: asv 0.6.6, asv_runner 0.3.2.
# Why it matters: a kernel of a million sectors that gains 100 by a wrong edge is not among the regressions, with a
# threshold of 0, too. Counts are compared exactly only by a program of one's own.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" asv==0.6.6 asv_runner==0.3.2
export PYTHONPATH="$work/packages"

cat >"$work/detect.py" <<'PYTHON'
import asv
from asv.step_detect import detect_regressions, detect_steps

print("asv", asv.__version__)
for commits in (5, 20, 200):
    for gain in (10_000, 1_000, 100, 10):
        steps = detect_steps([1_000_000] * commits + [1_000_000 + gain] * commits)
        is_regression = detect_regressions(steps, threshold=0)[0] is not None
        levels = ", ".join(f"{step[2]:,.0f}" for step in steps)
        print(f"{commits} commits, then {gain} more: {levels}; {'a' if is_regression else 'no'} regression")
PYTHON
python3 "$work/detect.py" | tee "$work/seen"

expected='asv 0.6.6
5 commits, then 10000 more: 1,000,000, 1,010,000; a regression
5 commits, then 1000 more: 1,000,500; no regression
5 commits, then 100 more: 1,000,050; no regression
5 commits, then 10 more: 1,000,005; no regression
20 commits, then 10000 more: 1,000,000, 1,010,000; a regression
20 commits, then 1000 more: 1,000,000, 1,001,000; a regression
20 commits, then 100 more: 1,000,050; no regression
20 commits, then 10 more: 1,000,005; no regression
200 commits, then 10000 more: 1,000,000, 1,010,000; a regression
200 commits, then 1000 more: 1,000,000, 1,001,000; a regression
200 commits, then 100 more: 1,000,000, 1,000,100; a regression
200 commits, then 10 more: 1,000,005; no regression'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
