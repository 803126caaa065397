"""The rise of a noisy series from its lowest level to its last one, by asv's step detection.

docs/evidence/drift.md says how many planted drifts it finds, and how often noise deceives it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from asv import step_detect

#: What another level costs: absolute deviations, in standard deviations of the noise. asv's own choice of it takes a
#: slow drift for correlated noise.
PENALTY = 12.0

#: Commits that make a level. A rise that fewer show may be an outlier.
LEAST = 3

#: Below this relative noise a series is taken to be that noisy: stored times have so many digits.
_QUIETEST = 1e-6


class Rise(NamedTuple):
    """The place of the last commit at the lowest level, and the logarithm of the ratio of the last level to it."""

    first: int
    size: float


def rise(values: Sequence[float], threshold: float) -> Rise | None:
    """Return the rise of a series of times; None if it is no larger than the threshold.

    Parameters
    ----------
    values : sequence of float
        A time a commit, oldest first, in any unit.
    threshold : float
        A relative change.
    """
    series = np.log(np.asarray(values, dtype=float))
    # From the median absolute difference of neighbours: steps hardly change it.
    noise = max(1.4826 * float(np.median(np.abs(np.diff(series)))) / math.sqrt(2), _QUIETEST)
    stops, *_ = step_detect.solve_potts_approx(list(series / noise), [1.0] * len(series), gamma=PENALTY, min_size=2)
    every = zip([0, *stops[:-1]], stops, strict=True)
    levels = [(float(np.median(series[start:stop])), stop - 1) for start, stop in every if stop - start >= LEAST]
    if not levels:
        return None
    (last, _), (lowest, first) = levels[-1], min(levels)
    return Rise(first, last - lowest) if last - lowest > math.log1p(threshold) else None
