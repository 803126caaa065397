"""The verdict on a whole comparison, and its exit code; docs/review.md has the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from kernelwatch.review.deciding import is_evidence
from kernelwatch.review.rows import Row
from kernelwatch.review.verdict import Verdict
from kernelwatch.store.results import TIMED

#: Of all times, so many may be undecided and could be slower: two runs of one commit exceed the thresholds so often.
OF_ALL = 1 / 100

#: Of the times of a kernel and its flags, so many: more, and what speaks for the kernel is not enough.
OF_A_KERNEL = 1 / 10

#: What may become worse in a TRADE that passes: nothing, numbers beside faster times, or anything.
TRADES = NONE, NUMBERS, ALL = "none", "numbers", "all"


def conclude(rows: Sequence[Row], *, fails: bool) -> Verdict:
    """Return the verdict: that of the worst row, but that few undecided ones do not count, nor what is noted.

    Parameters
    ----------
    rows : sequence of Row
        What both commits have.
    fails : bool
        Whether a configuration fails in head and did not in base.
    """
    found = {row.judgement.verdict for row in rows}
    rules = {
        Verdict.BROKEN: fails,
        Verdict.TRADE: Verdict.SLOWER in found and is_better(rows),
        Verdict.SLOWER: Verdict.SLOWER in found,
        Verdict.UNDECIDED: not rows or any(doubts(rows)),
    }
    left = (each for each in (Verdict.TRADE, Verdict.ACKNOWLEDGED) if each in found)
    better = Verdict.FASTER if is_better(rows) else Verdict.SAME
    return next((verdict for verdict, holds in rules.items() if holds), next(left, better))


def is_better(rows: Sequence[Row]) -> bool:
    """Whether a time is faster; where nothing was timed, whether a number fell that is more than evidence."""
    times = [row for row in rows if row.kind == TIMED]
    deciding = times or (row for row in rows if not is_evidence(row))
    return any(row.judgement.verdict is Verdict.FASTER for row in deciding)


def exit_code(found: Verdict, rows: Sequence[Row], trade: str) -> int:
    """Return 0: it passes; 1: it became worse; 2: it could not be judged.

    Parameters
    ----------
    found : Verdict
        That on the whole.
    rows : sequence of Row
        As above.
    trade : str
        One of TRADES.
    """
    if found is Verdict.TRADE:
        worse = ALL if any(row.judgement.verdict is Verdict.SLOWER for row in rows) else NUMBERS
        return int(TRADES.index(worse) > TRADES.index(trade))
    return {Verdict.BROKEN: 1, Verdict.SLOWER: 1, Verdict.UNDECIDED: 2}.get(found, 0)


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
