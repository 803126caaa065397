"""Default thresholds of times. Stored results can only lower a machine's; sampling and reuse keep the defaults."""

from collections.abc import Iterable

#: Minimum seconds of a launch whose start and end do not matter.
LONG_LAUNCH = 20e-6

#: Minimum seconds of a class of durations -> largest relative change that is SAME. Two runs of an H200 agreed to 0.45 %
#: from 20 µs on, and to 9.47 % below (docs/evidence/agreement.md, "One GPU").
DEFAULT_THRESHOLDS = {LONG_LAUNCH: 0.01, 0.0: 0.05}

#: Threshold of a time that two GPUs of one model took. H200s differed by up to 2 % in the median and by at most 7.3 %,
#: without times that are too noisy to judge (docs/evidence/agreement.md).
THRESHOLD_BETWEEN_GPUS = 0.08


def find_duration_class(seconds: float, classes: Iterable[float] = DEFAULT_THRESHOLDS) -> float:
    """Return the class of a duration: the largest of the minimum seconds in `classes` that it reaches, 0 if none."""
    return max((least for least in classes if seconds >= least), default=0.0)


def default_threshold(seconds: float) -> float:
    """Return the default threshold of a time: the largest relative change that is SAME."""
    return DEFAULT_THRESHOLDS[find_duration_class(seconds)]
