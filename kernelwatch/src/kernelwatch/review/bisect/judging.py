"""What is said of one commit between a good and a bad one, from the review's verdicts on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from kernelwatch.review.bisect.commits import Commit
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict


class Source(Enum):
    """Where the answer on a commit comes from, cheapest first."""

    STORED = "stored"
    SAME_CODE = "same machine code"
    BUILT = "built"
    MEASURED = "measured"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Step:
    """One commit that was looked at.

    Parameters
    ----------
    commit : Commit
        The commit.
    is_bad : bool or None
        Whether it is on the side of bad; None where that cannot be decided, which skips it.
    source : Source
        Where the answer comes from.
    value : float, optional
        Its number, where one was read.
    reason : str
        Why it is skipped, or what stands for it.
    """

    commit: Commit
    is_bad: bool | None
    source: Source
    value: float | None = None
    reason: str = ""

    @property
    def verdict(self) -> str:
        """Return what `git bisect` calls it."""
        return {True: "bad", False: "good", None: "skip"}[self.is_bad]


class Judge(Protocol):
    """Knows one configuration's number at any commit, or what the review says of two."""

    def row(self, base: Commit, head: Commit) -> Row | None:
        """Return the review's row; None where one of them has no number."""

    def step(self, commit: Commit) -> Step:
        """Judge a commit between the good and the bad one."""


def differs(row: Row) -> bool:
    """Return whether the review tells the two apart. A regression that is acknowledged is one all the same."""
    return row.judgement.verdict not in (Verdict.SAME, Verdict.UNDECIDED)


def side(from_good: Row, to_bad: Row) -> bool | None:
    """Return whether a commit is on the side of bad, from the review of good and it, and of it and bad.

    One that differs from both is on the side that it is nearer to: so what is found is the step across the middle of
    the change. None: the review is in doubt, or calls it the same as both.
    """
    verdicts = {row.judgement.verdict for row in (from_good, to_bad)}
    if Verdict.UNDECIDED in verdicts:
        return None
    nearer_to_bad = abs(from_good.head - from_good.base) > abs(to_bad.head - to_bad.base)
    known: dict[tuple[bool, bool], bool | None] = {
        (False, True): False,
        (True, False): True,
        (True, True): nearer_to_bad,
        (False, False): None,
    }
    return known[differs(from_good), differs(to_bad)]
