"""The verdict on a whole comparison, and its exit code; docs/review.md has the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import Enum

from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.store.results import TIMED


class Conclusion(Enum):
    """The first that holds, in this order, but for NO REGRESSION, which is what is left."""

    REGRESSION = "REGRESSION"
    COULD_NOT_JUDGE = "COULD NOT JUDGE"
    SAME_COMMIT = "SAME COMMIT"
    TRADE = "TRADE"
    NO_REGRESSION = "NO REGRESSION"


EXIT_CODES = {Conclusion.REGRESSION: 1, Conclusion.COULD_NOT_JUDGE: 2}

#: Of all times, so many may be undecided and could be slower: two runs of one commit exceed the thresholds so often.
OF_ALL = 1 / 100

#: Of the times of a kernel and its flags, so many: more, and what speaks for the kernel is not enough.
OF_A_KERNEL = 1 / 10


def conclude(rows: Sequence[Row], *, fails: bool, same: bool) -> Conclusion:
    """Return the verdict.

    Parameters
    ----------
    rows : sequence of Row
        What both commits have.
    fails : bool
        Whether a configuration fails in head and did not in base.
    same : bool
        Whether both are one commit.
    """
    verdicts = {row.judgement.verdict for row in rows}
    rules = {
        Conclusion.REGRESSION: fails or Verdict.SLOW in verdicts,
        Conclusion.COULD_NOT_JUDGE: not rows or any(doubts(rows)),
        Conclusion.SAME_COMMIT: same,
        Conclusion.TRADE: Verdict.TRADE in verdicts,
        Conclusion.NO_REGRESSION: True,
    }
    return next(conclusion for conclusion, holds in rules.items() if holds)


def doubts(rows: Sequence[Row]) -> Iterator[str]:
    """Why undecided times could turn the verdict, a sentence each; none if they could not."""
    times = [row for row in rows if row.kind == TIMED]
    kernels: dict[str, list[Row]] = defaultdict(list)
    for row in times:
        kernels[f"{row.kernel} {row.flags}".strip()].append(row)
    for whose, of_it, most in (
        ("all", times, OF_ALL),
        *((name, of_it, OF_A_KERNEL) for name, of_it in kernels.items()),
    ):
        count = sum(row.judgement.could_be_slower for row in of_it)
        if count > most * len(of_it):
            yield f"{count} of {len(of_it)} times of {whose} are undecided and could be slower"
