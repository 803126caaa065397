"""Verdicts on configurations and on whole reviews, with their reasons, as data."""

import math
from dataclasses import dataclass
from enum import Enum

import msgspec


class Verdict(Enum):
    """Verdicts, worst first.

    For a single configuration, TRADE and NOTED are verdicts on a counted or compiled number, not on a time. A whole
    review is BROKEN if some configurations fail only in head, FAILED if some fail in both commits, REPAIRED if some
    fail only in base. It is a TRADE if some became worse and some better. `conclude` chooses among several.
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

    def __init__(self, _: str) -> None:
        #: Place in this list.
        self.rank = len(type(self).__members__)


#: Verdicts on a number that rose and is not acknowledged. NOTED does not decide.
RISES = (Verdict.SLOWER, Verdict.TRADE, Verdict.NOTED)

#: Verdicts on a time that changed.
CHANGED_TIMES = (Verdict.SLOWER, Verdict.ACKNOWLEDGED, Verdict.FASTER)


class ReasonKind(Enum):
    """Reasons for a verdict, as format strings for `Reason.figures`."""

    NOT_POSITIVE = "a time is zero or negative"
    FEW_SAMPLES = "{} + {} samples, but at least {} per commit are needed; measure with --record-samples"
    ROUNDS = "rounds differ by {:.1%} in base and {:.1%} in head; the sum is at least the change"
    CHANCE = "p = {:.2g} after correction for {} configurations"
    INTERVAL = "the interval of the ratio, {:.3f} to {:.3f}, does not exclude 1"
    THROTTLED = "the GPU was throttled or shared {}"
    SEVERAL_GPUS = "measured on different GPUs"
    COPY = (
        "a plain copy, timed beside the kernel, changed as much (kernel / copy: {:.3f} times base); "
        "the machine changed, not the kernel"
    )
    UNCHANGED = "machine code unchanged"
    REUSED = "same machine code, not measured again"
    TIMES = "times: {}"
    INSTRUCTIONS = "explanation only"
    TOTALS = "explains the totals, which decide"
    SECTORS = "explains the sectors, which changed and decide"
    MERGED = "explains the merged wavefronts, which decide"
    NEW_SHARED_MEMORY = "there were none before, and the launch saves at least as many sectors"
    ADDRESSES = "explains the addresses of constant memory, which decide"
    NEW_CONSTANT_LOADS = (
        "new requests to constant memory have one address each, and the launch saves at least as many sectors"
    )
    IN_REGISTERS = "ptxas needs no stack frame; the array is in registers"
    ABOVE_LIMIT = "above the project's limit, {:.3g} times base"
    OCCUPANCY_UNKNOWN = "decides, because it is unknown how many threads fit on a multiprocessor"
    OCCUPANCY_CHANGED = "{} threads fit on a multiprocessor, {} before"
    OCCUPANCY_SAME = "explanation only: {} threads fit on a multiprocessor, {} before"
    ACCEPTED = "{}"


@dataclass(frozen=True)
class Reason:
    """A kind of reason, with the values for its format string. The names of the fields are keys of the JSON output."""

    why: ReasonKind
    figures: tuple[float | str, ...] = ()

    def __str__(self) -> str:
        return self.why.value.format(*self.figures)


#: Reason for two commits that share one measurement.
REUSED = Reason(ReasonKind.REUSED)


class Judgement(msgspec.Struct, frozen=True):
    """A verdict with its ratio, threshold, statistics and reasons.

    `ratio` is head / base; it is infinite if only base is 0. `threshold` is the largest relative change that is SAME;
    it is 0 for exact numbers. `p` is the corrected p-value of Mann-Whitney's test, if tested. `interval` is the
    bootstrap interval of the ratio, if computed. `reasons` explain the verdict. `could_be` are the least and the
    largest ratio that a changed time may truly have, if known.
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
        """The reasons as one text."""
        return "; ".join(map(str, self.reasons))

    @property
    def could_be_slower(self) -> bool:
        """True if the verdict is UNDECIDED, and the change may be a regression."""
        return self.verdict is Verdict.UNDECIDED and (self.could_be is None or self.could_be[1] > 1)

    @property
    def is_change(self) -> bool:
        """True if the verdict is SLOWER or FASTER."""
        return self.verdict in (Verdict.SLOWER, Verdict.FASTER)


def compute_ratio(base: float, head: float) -> float:
    """Return head / base; 1 for equal values, even zeros; else infinite if base is not positive."""
    if base == head:
        return 1.0
    return head / base if base > 0 else math.inf


def relative_change(ratio: float) -> float:
    """Return the relative change of a ratio, without its sign."""
    return abs(ratio - 1)


def format_percent(ratio: float) -> str:
    """Format a ratio as a signed change in per cent, such as "+3.2 %" or "-15 %"."""
    change = round(100 * (ratio - 1), 1)
    return f"{change:+.1f} %" if abs(change) < 10 else f"{change:+.0f} %"


def judge_exact(base: float, head: float) -> Judgement:
    """Return the judgement on a counted or compiled number: any difference counts, and lower is better."""
    verdict = Verdict.SAME if head == base else Verdict.SLOWER if head > base else Verdict.FASTER
    return Judgement(verdict, compute_ratio(base, head))
