"""Controls: times of equal machine code on two GPUs of one model. They show how much the times of the GPUs differ.

They hold only for kernels that are almost as fast as a copy. An uncoalesced transpose differed by 5 % between GPUs
whose copies agreed to 0.6 % (docs/evidence/agreement.md).
"""

from collections.abc import Iterable
from typing import NamedTuple

from kernelwatch.kernel import matrix_copy
from kernelwatch.review.pairing import Describe, Pair, is_code_unchanged, is_one_measurement
from kernelwatch.review.verdict import compute_ratio, relative_change
from kernelwatch.store.default_thresholds import LONG_LAUNCH
from kernelwatch.store.measurements import CommitMeasurements

#: Minimum number of controls besides the library's plain copy; a review with fewer does not use any. The plain copy
#: alone shows too little: with it as the only control, 582 of 4,344 times were beyond the threshold.
MIN_CONTROLS = 12

#: Largest ratio of a kernel's time to the copy's for which controls apply.
MAX_COPIES = 1.6


class Controls(NamedTuple):
    """The number of controls of a review, and the largest relative change among them."""

    number: int
    largest: float


def find_controls(
    base: CommitMeasurements, head: CommitMeasurements, times: Iterable[Pair], describe: Describe
) -> Controls | None:
    """Return number and largest change of the controls among pairs of times; None for too few (MIN_CONTROLS)."""
    pairs = [pair for pair in times if can_apply_controls(pair, describe) and is_control(base, head, pair, describe)]
    if sum(describe(pair.benchmark, pair.base.params).kernel != matrix_copy.NAME for pair in pairs) < MIN_CONTROLS:
        return None
    changes = [relative_change(compute_ratio(pair.base.value or 0.0, pair.head.value or 0.0)) for pair in pairs]
    return Controls(len(pairs), max(changes))


def can_apply_controls(pair: Pair, describe: Describe) -> bool:
    """Return whether controls apply to a pair of times.

    Controls apply if several known GPUs took the times, and both times are at least LONG_LAUNCH. Unless the kernel is
    the copy itself, both times must also be at most MAX_COPIES times the copy's time.
    """
    points = (pair.base, pair.head)
    if len(pair.gpus) < 2 or None in pair.gpus or any((point.value or 0.0) < LONG_LAUNCH for point in points):
        return False
    return describe(pair.benchmark, pair.base.params).kernel == matrix_copy.NAME or all(
        point.copies is not None and 0 < point.copies <= MAX_COPIES for point in points
    )


def is_control(base: CommitMeasurements, head: CommitMeasurements, pair: Pair, describe: Describe) -> bool:
    """Return whether both commits launched the same machine code, in two measurements without throttling.

    Times with a condition, such as "from L2", are no controls: their noise differs. The caller checks the GPUs and the
    times (`can_apply_controls`).
    """
    if pair.base.throttle_reasons or pair.head.throttle_reasons or is_one_measurement(base, head, pair):
        return False
    facts = describe(pair.benchmark, pair.base.params)
    return not facts.conditions and bool(
        is_code_unchanged(base, head, pair.benchmark, pair.base.params, facts.code_name)
    )
