"""Two detectors of levels in a noisy series, and the rise that both must find.

asv's step detection minimises absolute deviations, that of ruptures squared ones. One late outlier, or one odd stretch,
seldom deceives both. docs/evidence/drift.md has the score of each alone and of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from asv import step_detect
from numpy.typing import NDArray

#: What another level costs. asv: absolute deviations, in standard deviations of the noise. asv's own choice of it takes
#: a slow drift for correlated noise. ruptures: squared deviations, times the logarithm of the number of commits.
ASV_PENALTY = 12.0
RUPTURES_PENALTY = 12.0

#: Commits that make a level. A rise that fewer show may be an outlier.
LEAST = 3

#: Below this relative noise a series is taken to be that noisy: stored times have so many digits.
_QUIETEST = 1e-6

Series = NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """A stretch of a series in which nothing changed: from `start` up to, not including, `stop`; and its median."""

    start: int
    stop: int
    value: float


@dataclass(frozen=True)
class Rise:
    """From the lowest level before it to the last one."""

    best: Level
    last: Level

    @property
    def size(self) -> float:
        """In the units of the series."""
        return self.last.value - self.best.value


def noise(series: Series) -> float:
    """Standard deviation of the noise, from the median absolute difference of neighbours: steps hardly change it."""
    return max(1.4826 * float(np.median(np.abs(np.diff(series)))) / math.sqrt(2), _QUIETEST)


def by_asv(series: Series, penalty: float = ASV_PENALTY) -> list[Level]:
    """Levels by asv's step detection."""
    scaled = list(series / noise(series))
    stops, *_ = step_detect.solve_potts_approx(scaled, [1.0] * len(scaled), gamma=penalty, min_size=2)
    return _levels(series, stops)


def by_ruptures(series: Series, penalty: float = RUPTURES_PENALTY) -> list[Level]:
    """Levels by ruptures' exact search for changes of the mean."""
    import ruptures  # noqa: PLC0415 -- slow to import, and missing where it has no release for a new Python

    search = ruptures.KernelCPD(kernel="linear", min_size=2).fit(series.reshape(-1, 1) / noise(series))
    return _levels(series, search.predict(pen=penalty * math.log(len(series))))


DETECTORS: dict[str, Callable[[Series], list[Level]]] = {"asv": by_asv, "ruptures": by_ruptures}


def rise(levels: Sequence[Level]) -> Rise | None:
    """The rise from the lowest level to the last, which may be the same one; None if no level is long enough."""
    long = [level for level in levels if level.stop - level.start >= LEAST]
    best = min(long, key=lambda level: level.value, default=None)
    return None if best is None else Rise(best, long[-1])


def agreed(values: Sequence[float], threshold: float) -> Rise | None:
    """The rise of a series of times that all detectors find, the smallest of theirs, in logarithms.

    Parameters
    ----------
    values : sequence of float
        A time a commit, oldest first, in any unit.
    threshold : float
        The relative change above which each of them must find it.
    """
    series = np.log(np.asarray(values, dtype=float))
    found = [rise(detector(series)) for detector in DETECTORS.values()]
    sure = [each for each in found if each is not None and each.size > math.log1p(threshold)]
    return min(sure, key=lambda each: each.size) if len(sure) == len(DETECTORS) else None


def _levels(series: Series, stops: Sequence[int]) -> list[Level]:
    starts = [0, *stops[:-1]]
    return [Level(a, b, float(median(series[a:b]))) for a, b in zip(starts, stops, strict=True)]
