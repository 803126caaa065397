"""Verdicts on configurations and whole comparisons, with their reasons, as data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """Verdicts, worst first.

    Of one configuration, numbers alone are TRADE or NOTED. Of a whole comparison, BROKEN means that some fail in head
    alone, FAILED that some fail in both, REPAIRED that some fail in base alone, and TRADE that some became worse and
    others better: `conclusion`.
    """

    BROKEN = "BROKEN"
    SLOWER = "SLOWER"
    FAILED = "FAILED"
    UNDECIDED = "UNDECIDED"
    TRADE = "TRADE"
    ACKNOWLEDGED = "ACKNOWLEDGED"
    NOTED = "NOTED"
    REPAIRED = "REPAIRED"
    FASTER = "FASTER"
    SAME = "SAME"


#: Verdicts on a number that rose without an acknowledgement, deciding or not.
RISES = (Verdict.SLOWER, Verdict.TRADE, Verdict.NOTED)

#: Verdicts on a configuration that failed on one side or both.
FAILING = (Verdict.BROKEN, Verdict.FAILED, Verdict.REPAIRED)

#: Verdicts on a time that changed.
CHANGED_TIMES = (Verdict.SLOWER, Verdict.ACKNOWLEDGED, Verdict.FASTER)


class ReasonKind(Enum):
    """Reasons against a change, for or against a number that decides, or beside it, with places for figures."""

    NOT_POSITIVE = "a time that is not positive cannot be right"
    FEW_SAMPLES = "{} + {} samples, at least {} a side are needed; measure with --record-samples"
    ROUNDS = "rounds differ by {:.1%} in base, {:.1%} in head: together more than the change"
    CHANCE = "p = {:.2g} after correction for {} configurations"
    INTERVAL = "the interval of the ratio, {:.3f} to {:.3f}, does not confirm it"
    THROTTLED = "the GPU was throttled or shared {}"
    SEVERAL_GPUS = "not measured on one GPU"
    COPY = "the copy beside it changed as much ({:.3f} in copies): the machine, not the kernel"
    UNCHANGED = "machine code unchanged"
    NOT_AGAIN = "same machine code, not measured again"
    TIMES = "times: {}"
    INSTRUCTIONS = "evidence, which does not decide"
    TOTALS = "explains the totals, which decide"
    SECTORS = "explains the sectors, which changed and decide"
    MERGED = "explains the wavefronts of accesses as ptxas merges them, which decide"
    FIRST_SHARED = "it used no shared memory before, and saves at least as many sectors"
    ADDRESSES = "explains the addresses of constant memory, which decide"
    FIRST_UNIFORM = "each request to constant memory has one address, and it saves at least as many sectors"
    IN_REGISTERS = "ptxas needs no stack frame: it is in registers"
    BEYOND = "beyond the project's limit of {:.3g} of base"
    UNKNOWN_FIT = "how many threads fit on a multiprocessor is not known"
    OTHER_FIT = "{} threads fit on a multiprocessor, {} before"
    SAME_FIT = "evidence: {} threads fit on a multiprocessor, {} before"
    ACCEPTED = "{}"


@dataclass(frozen=True)
class Reason:
    """A kind of reason with its figures, or with words from acknowledged.toml or a time's verdicts."""

    why: ReasonKind
    figures: tuple[float | str, ...] = ()

    def __str__(self) -> str:
        return self.why.value.format(*self.figures)


#: Reason for two commits with the numbers of one measurement.
NOT_AGAIN = Reason(ReasonKind.NOT_AGAIN)


@dataclass(frozen=True)
class Judgement:
    """A verdict and what it rests on.

    `ratio` is head over base, infinite where base alone is 0. A time is SAME up to the relative change `threshold`,
    which is 0 of exact numbers. `p` is Mann-Whitney's, corrected for the number of configurations, where it was tested,
    and `interval` that of the ratio of medians, where it was needed. `reasons` say why it is UNDECIDED or ACKNOWLEDGED,
    or does not decide; else what is known beside it. A time that changed `could_be` between two ratios, by its interval
    and its processes, where that is known.
    """

    verdict: Verdict
    ratio: float
    threshold: float = 0.0
    p: float | None = None
    interval: tuple[float, float] | None = None
    reasons: tuple[Reason, ...] = ()
    could_be: tuple[float, float] | None = None

    @property
    def reason(self) -> str:
        """The reasons, for a reader."""
        return "; ".join(map(str, self.reasons))

    @property
    def could_be_slower(self) -> bool:
        """True if it is UNDECIDED and may be a regression."""
        return self.verdict is Verdict.UNDECIDED and (self.could_be is None or self.could_be[1] > 1)

    @property
    def is_change(self) -> bool:
        """True if something became slower or faster."""
        return self.verdict in (Verdict.SLOWER, Verdict.FASTER)


def compute_ratio(base: float, head: float) -> float:
    """Return head over base; equal values have ratio 1, even zeros."""
    if base == head:
        return 1.0
    return head / base if base > 0 else math.inf


def relative_change(ratio: float) -> float:
    """Return the relative change of a ratio, whatever its direction."""
    return abs(ratio - 1)


def format_percent(ratio: float) -> str:
    """Format a ratio as a signed change in per cent."""
    change = round(100 * (ratio - 1), 1)
    return f"{change:+.{int(abs(change) < 10)}f} %"


def judge_exact(base: float, head: float) -> Judgement:
    """Judge a counted or compiled number: the same input gives the same number, and lower is better everywhere."""
    verdict = Verdict.SLOWER if head > base else Verdict.FASTER
    return Judgement(verdict if base != head else Verdict.SAME, compute_ratio(base, head))
