"""Stretches of a machine's history in which the review never said that a time had changed, and one GPU measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kernelwatch.review.consecutive import Step
from kernelwatch.review.reasons import NOT_AGAIN
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import TOLD
from kernelwatch.store.noise import ANOTHER_GPU
from kernelwatch.store.results import TIMED


@dataclass
class Stretch:
    """One configuration's times over commits, oldest first, in seconds; `row` is the first comparison in it.

    `threshold` is the largest by which the review judged two neighbours. Some of the commits `changed` the machine
    code, where a run said so.
    """

    row: Row
    commits: list[str]
    seconds: list[float]
    threshold: float = 0.0
    changed: list[str] = field(default_factory=list)


def stretches(steps: Iterable[Step]) -> list[Stretch]:
    """Divide the times of each configuration where the review has seen a change, or another kind of GPU."""
    found: list[Stretch] = []
    current: dict[str, Stretch] = {}
    for step in steps:
        for comparison in step.comparisons:
            for row in comparison.rows:
                # A time that was taken over says nothing new.
                if row.kind != TIMED or min(row.base, row.head) <= 0 or NOT_AGAIN in row.judgement.reasons:
                    continue
                stretch = current.get(row.name)
                if _ends(row):
                    current.pop(row.name, None)
                    continue
                if stretch is None or stretch.seconds[-1] != row.base:  # in another of asv's environments
                    stretch = current[row.name] = Stretch(row, [comparison.base.commit], [row.base])
                    found.append(stretch)
                stretch.commits.append(step.head)
                stretch.seconds.append(row.head)
                stretch.threshold = max(stretch.threshold, row.judgement.threshold)
                if row.code_unchanged is False:
                    stretch.changed.append(step.head)
    return found


def _ends(row: Row) -> bool:
    """Whether a row is told as a change already, or its two times are of GPUs that may differ by as much."""
    return row.judgement.verdict in TOLD or row.judgement.threshold >= ANOTHER_GPU
