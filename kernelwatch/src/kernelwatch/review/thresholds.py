"""The thresholds of a machine's times: the defaults, narrowed if its stored history shows less noise.

Times of equal machine code differ only by noise. rustc-perf also derives its thresholds from its history (see its
documentation, "How we determine if a change is significant").
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kernelwatch.review.controls import Controls, can_apply_controls
from kernelwatch.review.pairing import Describe, Pair, is_code_unchanged, is_one_measurement, match_points
from kernelwatch.review.verdict import compute_ratio, relative_change
from kernelwatch.store.default_thresholds import (
    DEFAULT_THRESHOLDS,
    LONG_LAUNCH,
    THRESHOLD_BETWEEN_GPUS,
    find_duration_class,
)
from kernelwatch.store.measurements import CommitMeasurements

#: Maximum number of pairs of neighbouring commits whose noise is used, the newest first; minimum number of changes that
#: narrow a default.
MAX_PAIRS, MIN_CHANGES = 30, 100

#: Quantile of the changes that counts as the noise. Larger changes may be real: equal machine code may be
#: launched with another grid.
NOISE_QUANTILE = 0.99

#: Safety factor on the noise, since one false SLOWER fails a build.
SAFETY = 2

#: Step to whose multiples thresholds are rounded up, so that a new commit seldom changes a threshold.
STEP = 0.001


class Change(NamedTuple):
    """A time at base, and its relative change to head, without sign."""

    seconds: float
    relative: float


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of a machine: minimum duration in seconds -> largest relative change that is SAME."""

    by_duration: Mapping[float, float] = field(default_factory=lambda: dict(DEFAULT_THRESHOLDS))
    #: The controls of the review, if it has enough.
    controls: Controls | None = None

    def select(self, pair: Pair, describe: Describe) -> float:
        """Return the threshold of a pair of times."""
        if len(pair.gpus) > 1:
            return self.between_gpus if can_apply_controls(pair, describe) else THRESHOLD_BETWEEN_GPUS
        return self.by_duration[find_duration_class(pair.base.value or 0.0, self.by_duration)]

    @property
    def between_gpus(self) -> float:
        """The threshold of a time that several GPUs took, if `can_apply_controls`.

        It is SAFETY times the controls' largest change, rounded up, but at least the default of long launches. It is at
        most THRESHOLD_BETWEEN_GPUS, which also applies if there are no controls.
        """
        if self.controls is None:
            return THRESHOLD_BETWEEN_GPUS
        return min(
            THRESHOLD_BETWEEN_GPUS, max(DEFAULT_THRESHOLDS[LONG_LAUNCH], _round_up(SAFETY * self.controls.largest))
        )

    def __str__(self) -> str:
        """Return the thresholds as text, such as "1 % from 20 µs on, 5 % below"."""
        return ", ".join(
            f"{threshold * 100:g} % " + (f"from {least * 1e6:g} µs on" if least else "below")
            for least, threshold in self.by_duration.items()
        )


def narrow_thresholds(changes: Iterable[Change]) -> Thresholds:
    """Return the default thresholds, narrowed for each class of durations with at least MIN_CHANGES changes.

    A narrowed threshold is SAFETY times the NOISE_QUANTILE of the changes, rounded up. `changes` must be only noise.
    """
    by_class: dict[float, list[float]] = {least: [] for least in DEFAULT_THRESHOLDS}
    for seconds, relative in changes:
        by_class[find_duration_class(seconds)].append(relative)
    return Thresholds(
        {least: min(default, _compute_threshold(by_class[least])) for least, default in DEFAULT_THRESHOLDS.items()}
    )


def _compute_threshold(changes: list[float]) -> float:
    if len(changes) < MIN_CHANGES:
        return math.inf
    return _round_up(SAFETY * sorted(changes)[math.ceil(NOISE_QUANTILE * len(changes)) - 1])


def _round_up(change: float) -> float:
    return max(1, math.ceil(change / STEP)) * STEP


def iter_noise(base: CommitMeasurements, head: CommitMeasurements, describe: Describe) -> Iterator[Change]:
    """Yield the changes of times that are only noise: two runs of the same machine code on the same GPU."""
    for benchmark, measured in head.benchmarks.items():
        runs = measured.runs[-1:], base.benchmarks[benchmark].runs[-1:]
        # Interleaved runs agree better; they would underestimate the noise.
        if measured.type != "time" or (runs[0] and runs[0] == runs[1]):
            continue
        for old, new in match_points(base, head, benchmark):
            if not (old and new and old.value and new.value and min(old.value, new.value) > 0):
                continue
            pair = Pair(benchmark, old, new)
            if None in pair.gpus or len(pair.gpus) > 1 or is_one_measurement(base, head, pair):
                continue
            if is_code_unchanged(base, head, benchmark, old.params, describe(benchmark, old.params).code_name):
                yield Change(old.value, relative_change(compute_ratio(old.value, new.value)))
