"""What is said of one commit between a good and a bad one, from the review's verdicts on it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict

#: Where the answer on a commit comes from, cheapest first.
SOURCES = STORED, SAME_CODE, BUILT, MEASURED, SKIPPED = "stored", "same machine code", "built", "measured", "skipped"


@dataclass(frozen=True)
class Step:
    """One commit that was looked at: its verdict as `git bisect` calls it, and where that comes from.

    `value` is its number, where one was read; `reason` says why it is skipped, or what stands for it.
    """

    commit: str
    verdict: str
    source: str
    value: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Change:
    """A configuration's number at two commits, as the review judged it; `ratio` is None where it was 0."""

    configuration: str
    kind: str
    unit: str
    verdict: str
    before: float
    after: float
    ratio: float | None

    @classmethod
    def of(cls, row: Row) -> Change:
        """Return what a row says."""
        ratio = row.judgement.ratio if math.isfinite(row.judgement.ratio) else None
        return cls(row.name, row.kind, row.unit, row.judgement.verdict.value, row.base, row.head, ratio)


def differs(row: Row) -> bool:
    """Return whether the review tells the two apart. A regression that is acknowledged is one all the same."""
    return row.judgement.verdict not in (Verdict.SAME, Verdict.UNDECIDED)


def side(from_good: Row, to_bad: Row) -> str:
    """Return the side that a commit is on, from the review of good and it, and of it and bad.

    One that differs from both is on the side that it is nearer to: so what is found is the step across the middle of
    the change. "skip": the review is in doubt, or calls it the same as both.
    """
    if Verdict.UNDECIDED in (from_good.judgement.verdict, to_bad.judgement.verdict):
        return "skip"
    if differs(from_good) and differs(to_bad):
        return "bad" if abs(from_good.head - from_good.base) > abs(to_bad.head - to_bad.base) else "good"
    return "bad" if differs(from_good) else "good" if differs(to_bad) else "skip"
