#!/usr/bin/env bash
# Guess: the clearest difference, each sample of one commit below each of the other, has the smallest p-value of a test.
# Samples that are all alike within a commit cannot make it smaller than the exact test's smallest value.
# What happens: brunnermunzel() returns nan for separated samples, and overlapping ones get a small p. mannwhitneyu()
# takes its normal approximation as soon as two values are equal: four equal counts against four others have p = 0.013,
# though 2 of 70 arrangements, 0.029, is the smallest exact value, which four different counts have.
# Version: SciPy 1.15.3, NumPy 2.2.6.
# Why it matters: nan < 0.01 is False, so a check with Brunner and Munzel's test misses just the largest regressions.
# Counted GPU traffic repeats exactly, and looks twice as significant as measured times that differ as clearly.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" scipy==1.15.3 numpy==2.2.6
export PYTHONPATH="$work/packages"

cat >"$work/compare.py" <<'PYTHON'
import scipy
from scipy.stats import brunnermunzel, mannwhitneyu

print("scipy", scipy.__version__)
for test, label, before, after in [
    (brunnermunzel, "overlapping", [1, 2, 3, 4, 6], [5, 7, 8, 9, 10]),
    (brunnermunzel, "separated", [1, 2, 3, 4, 5], [6, 7, 8, 9, 10]),
    (mannwhitneyu, "separated, different", [1, 2, 3, 4], [5, 6, 7, 8]),
    (mannwhitneyu, "separated, equal", [1, 1, 1, 1], [5, 5, 5, 5]),
]:
    print(f"{test.__name__} {label}: p {test(before, after).pvalue:.2g}")
PYTHON
python3 -W ignore "$work/compare.py" | tee "$work/seen"

expected='scipy 1.15.3
brunnermunzel overlapping: p 3.9e-05
brunnermunzel separated: p nan
mannwhitneyu separated, different: p 0.029
mannwhitneyu separated, equal: p 0.013'
[ "$(cat "$work/seen")" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
