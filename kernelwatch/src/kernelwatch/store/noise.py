"""Default thresholds of times, for machines without enough history."""

from __future__ import annotations

#: Seconds from which on a launch is long enough for its start and end not to matter.
LONG = 20e-6

#: Seconds from which on, and relative change up to which, a time is SAME, longest first: two runs of an H200 agreed
#: to 0.45 % from 20 µs on, and scatter by up to 9.47 % below (docs/evidence/agreement.md, "One GPU").
DEFAULTS = ((LONG, 0.01), (0.0, 0.05))

#: The threshold between two GPUs of a kind: H200s differed by up to 2 % in the median and by up to 7.3 %, but for times
#: that are too noisy to judge (docs/evidence/agreement.md).
ANOTHER_GPU = 0.08


def default_threshold(seconds: float) -> float:
    """Return the relative change up to which a time is SAME where nothing else is known of it."""
    return next((threshold for least, threshold in DEFAULTS if seconds >= least), DEFAULTS[-1][1])
