"""The rule that ends the sampling of a configuration.

Of 818 times on an H200, ten samples a process and the first few that suffice have medians that differ by 0.02 % in the
median and by 0.2 % in one of a hundred (docs/evidence/times.md, "Samples until they suffice").
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from kernelwatch.store import noise

#: Minimum and maximum number of samples of a process. Mann-Whitney's test, after Holm's correction for 4,600 times,
#: can tell twice the minimum, of two processes, from as many: its smallest p is 2 of 184,756.
MIN_SAMPLES, MAX_SAMPLES = 5, 20

#: Maximum standard error of the median, as a share of the change that a review reports.
SHARE = 0.1


def is_sufficient(samples: Sequence[float]) -> bool:
    """Return whether the median of at least one sample, in seconds a launch, is known well enough.

    Its standard error is that of a normal distribution's median, sqrt(pi / 2) of the mean's (M. G. Kendall, "The
    Advanced Theory of Statistics", volume 1, 10.10).
    """
    median = statistics.median(samples)
    if len(samples) < 2:
        return False
    error = math.sqrt(math.pi / 2 / len(samples)) * statistics.stdev(samples)
    return error <= SHARE * noise.default_threshold(median) * median
