"""The review's p-value and confidence interval equal SciPy's."""

from typing import Any

import numpy as np
import pytest

from kernelwatch.review import significance
from kernelwatch.review.significance import Samples, compute_p_value, ratio_interval

#: Numbers of samples of base and of head, relative shift of head, and decimals of a sample: few decimals make ties.
CASES = [
    *((7, count, shift, 12) for count in (7, 13, 20) for shift in (0.0, 0.1)),
    *((count, 20, shift, decimals) for count in (9, 20) for shift in (0.0, 0.01) for decimals in (6, 7)),
    *((count, 40, shift, decimals) for count in (7, 40) for shift in (0.003, 0.1) for decimals in (6, 12)),
    (40, 41, 0.0, 5),
]


def _divide(new: Any, old: Any, axis: int) -> Any:
    return np.median(new, axis=axis) / np.median(old, axis=axis)


@pytest.fixture(scope="module")
def stats() -> Any:
    """Return `scipy.stats`. Its import takes two seconds, so only tests that need SciPy import this module."""
    from scipy import stats

    return stats


def make_samples(base: int, head: int, shift: float, decimals: int) -> tuple[Samples, Samples]:
    """Return samples of 30 µs with 1 % noise, in seconds. Samples of head are longer by the relative `shift`."""
    rng = np.random.default_rng(base + head)
    old, new = (30e-6 * (1 + rng.normal(0, 0.01, count)) for count in (base, head))
    return tuple(old.round(decimals).tolist()), tuple((new * (1 + shift)).round(decimals).tolist())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_p_value_as_in_scipy(case: tuple[int, int, float, int], stats: Any) -> None:
    base, head = make_samples(*case)
    method = "exact" if max(map(len, (base, head))) <= significance._MAX_EXACT_SAMPLES else "asymptotic"
    expected = stats.mannwhitneyu(base, head, method=method).pvalue
    assert compute_p_value(base, head) == pytest.approx(float(expected), rel=1e-13)
    assert compute_p_value(head, base) == compute_p_value(base, head)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_interval_as_in_scipy(case: tuple[int, int, float, int], stats: Any) -> None:
    base, head = make_samples(*case)
    options = {"n_resamples": significance.RESAMPLES, "confidence_level": significance.CONFIDENCE}
    rng = np.random.default_rng(significance.SEED)
    bootstrap = stats.bootstrap((np.array(head), np.array(base)), _divide, method="percentile", rng=rng, **options)
    assert ratio_interval(base, head) == tuple(map(float, bootstrap.confidence_interval))
