"""Controls: times of equal machine code that two GPUs of a kind took, by which other times are compared.

Kernels that move memory about as fast as a copy does differ between two GPUs as copies do. Kernels far from a copy do
not: an uncoalesced transpose differed by 5 % between GPUs on which all copies agreed to 0.6 %
(docs/evidence/agreement.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kernelwatch.kernel import matrix_copy
from kernelwatch.review.pairing import Describe, Pair, is_code_unchanged, is_one_measurement
from kernelwatch.review.verdict import compute_ratio, relative_change
from kernelwatch.store.measurements import CommitMeasurements
from kernelwatch.store.noise import LONG

#: Fewer times of equal machine code are no controls.
MIN_CONTROLS = 12

#: Times in copies up to which a kernel moves memory about as fast as a copy does.
MAX_COPIES = 1.6


class Controls(NamedTuple):
    """The number of controls of a review, and the largest relative change among them."""

    number: int
    largest: float


def find_controls(
    base: CommitMeasurements, head: CommitMeasurements, times: Iterable[Pair], describe: Describe
) -> Controls | None:
    """Return the controls among pairs of times; None if they are too few."""
    changes = [
        relative_change(compute_ratio(pair.base.value or 0.0, pair.head.value or 0.0))
        for pair in times
        if is_comparable(pair, describe) and is_control(base, head, pair, describe)
    ]
    return Controls(len(changes), max(changes)) if len(changes) >= MIN_CONTROLS else None


def is_comparable(pair: Pair, describe: Describe) -> bool:
    """Return whether controls bound a pair: two known GPUs took long times, at most MAX_COPIES on both.

    Pairs of the library's own copy are controls of every review, also where all kernels changed.
    """
    points = (pair.base, pair.head)
    if len(pair.gpus) < 2 or None in pair.gpus or any((point.value or 0.0) < LONG for point in points):
        return False
    return describe(pair.benchmark, pair.base.params).kernel == matrix_copy.NAME or all(
        point.copies is not None and 0 < point.copies <= MAX_COPIES for point in points
    )


def is_control(base: CommitMeasurements, head: CommitMeasurements, pair: Pair, describe: Describe) -> bool:
    """Return whether both commits launched the same machine code, and measured it anew without throttling."""
    if pair.base.throttled or pair.head.throttled or is_one_measurement(base, head, pair):
        return False
    facts = describe(pair.benchmark, pair.base.params)
    # Launches from L2 and isolated ones have noise of their own.
    return not facts.conditions and bool(
        is_code_unchanged(base, head, pair.benchmark, pair.base.params, facts.code_name)
    )
