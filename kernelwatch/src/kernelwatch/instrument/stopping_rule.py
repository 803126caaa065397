"""When the samples of a configuration suffice.

Of 818 times on an H200, ten samples a process and the first few that suffice have medians that differ by 0.02 % in the
median and by 0.2 % in one of a hundred (docs/evidence/times.md, "Samples until they suffice").
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from kernelwatch.store import noise

#: Samples that a process takes at least and at most. Twice the least, of two processes, can be told from as many by
#: Mann-Whitney's test after Holm's correction for 4,600 times: its smallest p is 2 of 184,756.
FEWEST, MOST = 5, 20

#: The median is known well enough to this share of the change that a review believes.
SHARE = 0.1


def suffice(samples: Sequence[float]) -> bool:
    """Return whether the median of samples, in seconds a launch, is known well enough; one at least.

    Its standard error is that of a normal distribution's median, sqrt(pi / 2) of the mean's (M. G. Kendall, "The
    Advanced Theory of Statistics", volume 1, 10.10).
    """
    median = statistics.median(samples)
    if len(samples) < 2:
        return False
    error = math.sqrt(math.pi / 2 / len(samples)) * statistics.stdev(samples)
    return error <= SHARE * noise.default_threshold(median) * median
