"""Verdicts on times, from the recorded samples.

A change counts if it is larger than the machine's noise, larger than what the processes of each commit differ by, and
significant by Mann-Whitney's test after Holm's correction, with an interval of the ratio of medians that excludes 1.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelwatch.review.verdict import Judgement, Reason, Verdict, Why, ratio
from kernelwatch.store.points import Point

#: Fewer a side are not judged: 6 + 6 cannot reach asv's own significance either.
FEWEST_SAMPLES = 7

#: Chance of one false alarm or more in a whole comparison, were all samples independent.
ALPHA = 0.05

CONFIDENCE = 0.99
RESAMPLES = 1999
SEED = 5

#: Up to so many samples a side the test is exact; beyond, the normal approximation is good and much cheaper.
#: Exactness matters: at 10 + 10 the approximation's smallest p is 17 times too large, too large for 600 configurations.
_EXACT = 20

Samples = NDArray[np.float64]


def judge(pairs: Sequence[tuple[Point, Point]], thresholds: Sequence[float]) -> list[Judgement]:
    """Judge pairs of base and head, one family for the correction; each is SAME up to its relative threshold."""
    tested = [
        index
        for index, pair in enumerate(pairs)
        if min(len(point.samples) for point in pair) >= FEWEST_SAMPLES
        and _positive(*pair)
        and pair[0].samples != pair[1].samples  # of one measurement: not a test, and no reason to correct others
    ]
    corrected = dict(zip(tested, holm(_mann_whitney([pairs[index] for index in tested])), strict=True))
    return [
        _judge_one(base, head, threshold, corrected.get(index), len(tested))
        for index, ((base, head), threshold) in enumerate(zip(pairs, thresholds, strict=True))
    ]


def _judge_one(base: Point, head: Point, threshold: float, p: float | None, family: int) -> Judgement:
    assert base.value is not None, "only configurations with values are judged"
    assert head.value is not None, "only configurations with values are judged"
    found = ratio(base.value, head.value)
    if not _positive(base, head):
        return Judgement(Verdict.UNDECIDED, found, threshold, reasons=(Reason(Why.NOT_POSITIVE),))
    if abs(found - 1) <= threshold:
        return Judgement(Verdict.SAME, found, threshold, p)
    if p is None:
        few = Reason(Why.FEW_SAMPLES, (len(base.samples), len(head.samples), FEWEST_SAMPLES))
        return Judgement(Verdict.UNDECIDED, found, threshold, reasons=(few,))
    old, new = ([float(np.median(samples)) for samples in point.rounds] for point in (base, head))
    spreads = max(old) / min(old) - 1, max(new) / min(new) - 1
    low, high = interval = ratio_interval(base.samples, head.samples)
    rules = (
        # The samples of one round are correlated, so no test of samples sees that a whole round was fast or slow. A
        # median may be off by what its rounds differ by, on both sides: a change must exceed the two together.
        (sum(spreads) >= max(found, 1 / found) - 1, Why.ROUNDS, spreads),
        (p >= ALPHA, Why.CHANCE, (p, family)),
        (low <= 1 if found > 1 else high >= 1, Why.INTERVAL, interval),
    )
    doubts = tuple(Reason(why, figures) for holds, why, figures in rules if holds)[:1]
    verdict = Verdict.UNDECIDED if doubts else Verdict.SLOWER if found > 1 else Verdict.FASTER
    # Within the interval, or between what any round of base and any of head say.
    could_be = min(low, min(new) / max(old)), max(high, max(new) / min(old))
    return Judgement(verdict, found, threshold, p, interval, doubts, could_be)


@functools.cache
def ratio_interval(base: tuple[float, ...], head: tuple[float, ...]) -> tuple[float, float]:
    """Bootstrap interval of median(head) / median(base), percentile method, always the same for the same samples."""
    from scipy import stats  # noqa: PLC0415 -- slow to import, and only times need it

    found = stats.bootstrap(
        [np.asarray(side) for side in (head, base)],
        lambda one, two, axis: np.median(one, axis=axis) / np.median(two, axis=axis),
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: p-values to be compared with ALPHA, whatever the dependence between the tests.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979).
    """
    given = np.asarray(p_values, dtype=float)
    order = np.argsort(given)
    stepped = np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1))
    corrected = np.empty_like(given)
    corrected[order] = np.minimum(stepped, 1.0)
    return [float(p) for p in corrected]


def _mann_whitney(pairs: Sequence[tuple[Point, Point]]) -> list[float]:
    """Its p-values. Pairs with as many samples are tested at once: one by one, most of the time would be the calls'."""
    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, (base, head) in enumerate(pairs):
        alike[len(base.samples), len(head.samples)].append(index)
    found = [1.0] * len(pairs)
    for counts, places in alike.items():
        from scipy import stats  # noqa: PLC0415 -- slow to import, and only times need it

        sides = (np.array([pairs[index][side].samples for index in places]) for side in (0, 1))
        # Ties make the exact distribution of untied samples a conservative one: fine.
        method = "exact" if max(counts) <= _EXACT else "asymptotic"
        tested: Any = stats.mannwhitneyu(*sides, method=method, axis=1)
        for index, p in zip(places, tested.pvalue, strict=True):
            found[index] = float(p)
    return found


def _positive(base: Point, head: Point) -> bool:
    return all(min((point.value or 0.0, *point.samples)) > 0 for point in (base, head))
