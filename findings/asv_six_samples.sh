#!/usr/bin/env bash
# Guess: the more samples of two commits, the sooner asv calls a clear difference significant.
# What happens: with exactly 6 samples on each side asv calls no difference significant, not even a factor of 100.
# With 5 or with 7 it does. asv uses the Mann-Whitney test if one arrangement of the samples has less than its
# threshold, 0.002: 1/924 = 0.0011 for 6 and 6. But the test is two-sided, so the smallest p is 2/924 = 0.0022.
# With fewer samples asv compares confidence intervals instead, which can succeed.
# Version: asv 0.6.6, asv_runner 0.3.2.
# Why it matters: two rounds of `repeat = 3` are 6 samples, a natural choice for slow GPU benchmarks. Where samples are
# recorded, as `asv continuous` does, no regression of such a benchmark is reported, whatever happens.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip install -qq --target "$work/packages" asv==0.6.6 asv_runner==0.3.2
export PYTHONPATH="$work/packages"

cat >"$work/compare.py" <<'PYTHON'
import asv
from asv._stats import is_different, mann_whitney_u
from asv_runner.statistics import compute_stats

print("asv", asv.__version__)
for count in range(3, 11):
    before = [1 + sample / 1000 for sample in range(count)]
    after = [100 * sample for sample in before]
    statistics = [compute_stats(samples, 1)[1] for samples in (before, after)]
    p = mann_whitney_u(before, after)[1]
    print(count, "samples: p", f"{p:.5f}", "different" if is_different(before, after, *statistics) else "not different")
PYTHON
python3 "$work/compare.py" | tee "$work/seen"

expected='6 samples: p 0.00216 not different'
seen=$(grep 'not different' "$work/seen" || true)
[ "$seen" = "$expected" ] || { echo 'the behaviour changed' >&2; exit 1; }
