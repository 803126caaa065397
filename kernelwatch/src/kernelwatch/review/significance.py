"""Significance of a difference between two sets of samples: Mann and Whitney's test, and a bootstrap interval.

A test checks that SciPy's functions give the same numbers. SciPy is not used here, because its import takes longer than
a whole review.
"""

import functools
import itertools
import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.99
RESAMPLES = 1999
SEED = 5

#: Maximum number of samples per commit for the exact test; with more, the normal approximation is good and much
#: cheaper. With 10 + 10 samples, the approximation's smallest p is 17 times too large to judge 600 configurations.
_MAX_EXACT_SAMPLES = 20

#: Samples of one configuration at one commit.
Samples = tuple[float, ...]


def compute_p_value(base: Samples, head: Samples) -> float:
    """Return the two-sided p-value of Mann and Whitney's test.

    Source: H. B. Mann, D. R. Whitney, "On a test of whether one of two random variables is stochastically larger than
    the other", Ann. Math. Stat. 18 (1947).
    """
    count = len(base) * len(head)
    ordered = np.sort(head)
    won = sum(int(np.searchsorted(ordered, base, side).sum()) for side in ("left", "right")) / 2  # ties are half won
    statistic = max(won, count - won)
    if max(len(base), len(head)) <= _MAX_EXACT_SAMPLES:
        # With ties, the exact distribution for untied samples is conservative, which is acceptable.
        tail = _cumulate_u(*sorted((len(base), len(head))))[count - int(statistic)]
        return min(1.0, 2 * float(tail))
    total = len(base) + len(head)
    ties = np.array(list(Counter((*base, *head)).values()), dtype=float)
    variance = count / 12 * ((total + 1) - float((ties**3 - ties).sum()) / (total * (total - 1)))
    # Continuity correction: half a step belongs to the tail.
    deviation = (statistic - count / 2 - 0.5) / math.sqrt(variance) if variance > 0 else -math.inf
    return min(1.0, math.erfc(deviation * math.sqrt(0.5)))


@functools.cache
def _cumulate_u(fewer: int, more: int) -> NDArray[np.float64]:
    """Return the cumulative distribution of Mann and Whitney's U without ties, for `fewer` and `more` samples.

    Element k is the share of the orders of all samples in which one side wins at most k pairs. The number of orders
    with k won pairs is a coefficient of the Gaussian binomial, the product of (1 - q^(more + i)) / (1 - q^i).
    """
    orders = np.zeros(fewer * more + 1, dtype=np.int64)
    orders[0] = 1
    for step in range(1, fewer + 1):
        orders[more + step :] -= orders[: -(more + step)].copy()
        for first in range(step):
            orders[first::step] = np.cumsum(orders[first::step])
    return np.cumsum(orders / math.comb(fewer + more, fewer))


@functools.cache
def ratio_interval(base: Samples, head: Samples) -> tuple[float, float]:
    """Return the bootstrap interval of median(head) / median(base): percentile method, with a fixed seed."""
    draws = _draw_resamples(len(head), len(base))
    new, old = (_resample_medians(samples, drawn) for samples, drawn in zip((head, base), draws, strict=True))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.percentile(new / old, (tail * 100, (1 - tail) * 100))
    return float(low), float(high)


@functools.cache
def _draw_resamples(*counts: int) -> tuple[NDArray[np.integer], ...]:
    """Return an array (samples, RESAMPLES) for each number of samples: how often each resample draws each sample."""
    rng = np.random.default_rng(SEED)
    sides = []
    for count in counts:
        drawn = rng.integers(0, count, (RESAMPLES, count)).T
        places = drawn * RESAMPLES + np.arange(RESAMPLES)
        frequencies = np.bincount(places.ravel(), minlength=count * RESAMPLES)
        sides.append(frequencies.reshape(count, RESAMPLES).astype(np.min_scalar_type(count)))
    return tuple(sides)


def _resample_medians(samples: Samples, drawn: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the median of each resample; `drawn` is an array of `_draw_resamples`."""
    values = np.array(samples)
    order = values.argsort()
    ordered, counted = values[order], drawn[order]
    for previous, current in itertools.pairwise(counted):  # NumPy's own cumsum along the first axis is slower
        np.add(current, previous, out=current)
    middle = (len(values) - 1) // 2, len(values) // 2
    lower, upper = (ordered[(counted <= place).sum(axis=0, dtype=drawn.dtype)] for place in middle)
    medians: NDArray[np.float64] = (lower + upper) / 2
    return medians
