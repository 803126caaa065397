"""Verdicts on times, from the recorded samples.

A change counts only if four conditions hold. It is larger than the machine's threshold. It is larger than the sum of
both commits' spreads between rounds. It is significant by Mann-Whitney's test after Holm's correction. The bootstrap
interval of the ratio excludes 1.
"""

import statistics
from collections.abc import Sequence

import numpy as np

from kernelwatch.review.significance import compute_p_value, ratio_interval
from kernelwatch.review.verdict import Judgement, Reason, ReasonKind, Verdict, compute_ratio
from kernelwatch.store.points import Point

#: Minimum number of samples per commit. With 6 + 6 samples, asv's own test cannot be significant either.
FEWEST_SAMPLES = 7

#: Probability of at least one false alarm in a comparison, if all samples were independent.
ALPHA = 0.05


def judge_times(pairs: Sequence[tuple[Point, Point]], thresholds: Sequence[float]) -> list[Judgement]:
    """Return the judgement on each pair of times (base, head); `thresholds` has the threshold of each pair.

    Holm's correction covers the pairs with enough samples and positive times, unless base and head have identical
    samples.
    """
    tested = [
        index
        for index, pair in enumerate(pairs)
        if min(len(point.samples) for point in pair) >= FEWEST_SAMPLES
        and _is_positive(*pair)
        and pair[0].samples != pair[1].samples  # identical samples are one measurement
    ]
    p_values = [compute_p_value(*(point.samples for point in pairs[index])) for index in tested]
    corrected = dict(zip(tested, apply_holm_correction(p_values), strict=True))
    return [
        _judge_one(base, head, threshold, corrected.get(index), len(tested))
        for index, ((base, head), threshold) in enumerate(zip(pairs, thresholds, strict=True))
    ]


def _judge_one(base: Point, head: Point, threshold: float, p: float | None, tested_count: int) -> Judgement:
    """Return the judgement on a pair; `p` is corrected for `tested_count` pairs, and None if the pair is not tested."""
    assert base.value is not None, "only configurations with values are judged"
    assert head.value is not None, "only configurations with values are judged"
    time_ratio = compute_ratio(base.value, head.value)
    if not _is_positive(base, head):
        return Judgement(Verdict.UNDECIDED, time_ratio, threshold, reasons=(Reason(ReasonKind.NOT_POSITIVE),))
    if abs(time_ratio - 1) <= threshold:
        return Judgement(Verdict.SAME, time_ratio, threshold, p)
    if p is None:
        few = Reason(ReasonKind.FEW_SAMPLES, (len(base.samples), len(head.samples), FEWEST_SAMPLES))
        return Judgement(Verdict.UNDECIDED, time_ratio, threshold, reasons=(few,))
    old, new = (list(map(statistics.median, point.rounds)) for point in (base, head))
    spreads = max(old) / min(old) - 1, max(new) / min(new) - 1
    low, high = interval = ratio_interval(base.samples, head.samples)
    rules = (
        # The samples of a round are correlated, so a test of samples cannot detect a slow round. The error of a median
        # may be as large as the spread of its rounds. So a change must exceed the sum of both spreads.
        (sum(spreads) >= max(time_ratio, 1 / time_ratio) - 1, ReasonKind.ROUNDS, spreads),
        (p >= ALPHA, ReasonKind.CHANCE, (p, tested_count)),
        (low <= 1 if time_ratio > 1 else high >= 1, ReasonKind.INTERVAL, interval),
    )
    doubts = tuple(Reason(why, figures) for holds, why, figures in rules if holds)[:1]
    direction = Verdict.SLOWER if time_ratio > 1 else Verdict.FASTER
    verdict = Verdict.UNDECIDED if doubts else direction
    # The range covers the interval and the ratios of all pairs of rounds.
    could_be = min(low, min(new) / max(old)), max(high, max(new) / min(old))
    return Judgement(verdict, time_ratio, threshold, p, interval, doubts, could_be)


def apply_holm_correction(p_values: Sequence[float]) -> list[float]:
    """Return p-values after Holm's correction, which is valid even if the tests depend on one another.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979).
    """
    p_array = np.asarray(p_values, dtype=float)
    order = np.argsort(p_array)
    stepped = np.maximum.accumulate(p_array[order] * np.arange(len(p_array), 0, -1))
    corrected = np.empty_like(p_array)
    corrected[order] = np.minimum(stepped, 1.0)
    return [float(p) for p in corrected]


def _is_positive(base: Point, head: Point) -> bool:
    return all(min((point.value or 0.0, *point.samples)) > 0 for point in (base, head))
