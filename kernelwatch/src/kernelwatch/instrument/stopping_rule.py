"""The rule that ends the sampling of a configuration.

For 818 times on an H200, the rule's median was compared with that of ten samples per process. They differ by 0.02 % in
the median and by 0.2 % at the 99th percentile (docs/evidence/times.md, "Samples until they suffice").
"""

import math
import statistics
from collections.abc import Sequence

from kernelwatch.store import default_thresholds

#: Minimum and maximum number of samples per round. With two rounds of the minimum per commit, Mann-Whitney's smallest p
#: is 2 / 184,756, which suffices after Holm's correction for 4,600 times.
MIN_SAMPLES, MAX_SAMPLES = 5, 20

#: Maximum standard error of the median, as a share of the default threshold of a review.
ERROR_SHARE = 0.1


def is_sufficient(samples: Sequence[float]) -> bool:
    """Return whether the median of samples, in seconds per launch, is precise enough; false for one sample.

    Raises StatisticsError without samples. The standard error of a normal distribution's median is sqrt(pi / 2) times
    that of the mean (M. G. Kendall, "The Advanced Theory of Statistics", volume 1, 10.10).
    """
    median = statistics.median(samples)
    if len(samples) < 2:
        return False
    error = math.sqrt(math.pi / 2 / len(samples)) * statistics.stdev(samples)
    return error <= ERROR_SHARE * default_thresholds.default_threshold(median) * median
