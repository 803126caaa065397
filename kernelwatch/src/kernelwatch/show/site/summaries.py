"""The lines of asv's benchmark grid: one for all machines and configurations, whichever of them a commit has.

asv takes the mean over those that a commit has. A machine that joins later, or a kernel that an old commit lacks, then
makes a step where nothing changed. Here every commit is compared with the one before by what both have, and the line
is chained from these comparisons, as a price index is over goods that come and go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from asv import graph

#: One series: a value a commit, None or NaN where there is none.
Series = Sequence[float | None]

_MEAN = graph._compute_summary_data_series


def chain(*series: Series) -> list[float | None]:
    """A line over commits for several series.

    It ends at the geometric mean of each series' last value. Going back, it changes from commit to commit by the
    geometric mean of the changes of those series that have begun by the earlier; what a series lacks in between is its
    value before. None where no series has a value. With values that have no logarithm, asv's own mean.
    """
    values = np.array([[np.nan if value is None else value for value in each] for each in series], dtype=float)
    measured = np.flatnonzero(~np.isnan(values).all(axis=0))
    if measured.size == 0 or (values <= 0).any():
        found: list[float | None] = _MEAN(*series)
        return found
    logarithms = np.log(values[:, measured])
    for place in range(1, measured.size):
        column = logarithms[:, place]
        column[np.isnan(column)] = logarithms[np.isnan(column), place - 1]
    # Some series has always begun by then.
    changes = np.nanmean(np.diff(logarithms), axis=0)
    levels = np.nanmean(logarithms[:, -1]) - np.append(np.cumsum(changes[::-1])[::-1], 0.0)
    line: list[float | None] = [None] * values.shape[1]
    for place, level in zip(measured.tolist(), np.exp(levels).tolist(), strict=True):
        line[place] = level
    return line
