"""By how much a time may change on a machine before it means anything: the defaults, narrowed by what is stored.

What two commits launch with the same machine code differs by noise alone. rustc-perf takes its thresholds from such
history, too (its documentation, "How we determine if a change is significant").
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwatch.review.commits import sides
from kernelwatch.review.evidence import Evidence
from kernelwatch.review.verdict import change, ratio
from kernelwatch.store.noise import DEFAULTS
from kernelwatch.store.results import History

#: Pairs of neighbouring commits that are looked at, the newest, and changes that narrow a default.
COMMITS, FEWEST = 30, 100

#: The share of the changes that count: another grid with the same machine code is a change all the same.
SHARE = 0.99

#: A threshold is this much larger than all that count: one false SLOWER fails a build.
SAFETY = 2

#: Thresholds are rounded up to multiples of it: another commit seldom makes another threshold.
STEP = 0.001


@dataclass(frozen=True)
class Noise:
    """The thresholds of a machine: relative changes up to which times are SAME, by the seconds from which they hold."""

    thresholds: Mapping[float, float] = field(default_factory=lambda: dict(DEFAULTS))

    def threshold(self, seconds: float) -> float:
        """Return the threshold of a time of base, if one GPU measured base and head."""
        return self.thresholds[max((least for least in self.thresholds if seconds >= least), default=0.0)]

    def __str__(self) -> str:
        """For example "1 % from 20 µs on, 5 % below"."""
        return ", ".join(
            f"{threshold * 100:g} % " + (f"from {least * 1e6:g} µs on" if least else "below")
            for least, threshold in self.thresholds.items()
        )


def noise(history: History, head: str) -> Noise:
    """Return the thresholds of a machine as its history tells them up to a commit: later ones change no verdict."""
    found: dict[float, list[float]] = {least: [] for least, _ in DEFAULTS}
    line = [head, *history.graph.ancestors(head)]
    for commit, base in itertools.islice(itertools.pairwise(line), COMMITS):
        for seconds, changed in changes(history, base, commit):
            found[next(least for least in found if seconds >= least)].append(changed)
    return Noise({least: min(default, narrowed(found[least])) for least, default in DEFAULTS})


def narrowed(changes: list[float]) -> float:
    """Return the threshold that changes by noise alone speak for; infinite if they are too few."""
    if len(changes) < FEWEST:
        return math.inf
    most = sorted(changes)[math.ceil(SHARE * len(changes)) - 1]
    return max(1, math.ceil(SAFETY * most / STEP)) * STEP


@functools.lru_cache(maxsize=1024)
def changes(history: History, base: str, head: str) -> list[tuple[float, float]]:
    """Return the seconds and the relative change of each time that one GPU measured in two runs of one machine code."""
    found = []
    for both in sides(history, (base, head), [base, head]):
        evidence = Evidence(both)
        for benchmark in history.benchmarks("time"):
            runs = [history.run_of(side.results, benchmark) for side in both.both]
            for old, new in both.points(benchmark) if runs[0] is not runs[1] else ():  # in turns they agree better
                if (
                    old and new and old.value and new.value and min(old.value, new.value) > 0
                    and not evidence.is_one_measurement(old, new)
                    and evidence.machine_code_unchanged(benchmark, old)
                    and not evidence.are_several_gpus(benchmark, old)
                    and None not in evidence.gpus(benchmark, old)
                ):  # fmt: skip
                    found.append((old.value, change(ratio(old.value, new.value))))
    return found
