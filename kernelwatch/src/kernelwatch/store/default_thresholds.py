"""Default thresholds of times, for machines with too little history."""

from __future__ import annotations

#: Minimum seconds of a launch whose start and end do not matter.
LONG_LAUNCH = 20e-6

#: (minimum seconds, largest relative change that is SAME), longest first. Two runs of an H200 agreed to 0.45 % from 20
#: µs on, and to 9.47 % below (docs/evidence/agreement.md, "One GPU").
DEFAULT_THRESHOLDS = ((LONG_LAUNCH, 0.01), (0.0, 0.05))

#: The threshold between two GPUs of one model. Without times that are too noisy to judge, H200s differed by up to 2 %
#: in the median and by at most 7.3 % (docs/evidence/agreement.md).
THRESHOLD_BETWEEN_GPUS = 0.08


def default_threshold(seconds: float) -> float:
    """Return the default threshold of a time: the largest relative change that is SAME."""
    return next((threshold for least, threshold in DEFAULT_THRESHOLDS if seconds >= least), DEFAULT_THRESHOLDS[-1][1])
