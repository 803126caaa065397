"""What is said of a configuration, of several, or of a whole comparison; and the rule for numbers that are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from kernelwatch.review.reasons import Reason


class Verdict(Enum):
    """In the order in which a reader wants them: worst first.

    Of one configuration, numbers alone are TRADE or NOTED: `deciding`. Of a whole comparison, BROKEN means that some
    fail in head alone, and TRADE that some became worse and others better: `conclusion`.
    """

    BROKEN = "BROKEN"
    SLOWER = "SLOWER"
    UNDECIDED = "UNDECIDED"
    TRADE = "TRADE"
    ACKNOWLEDGED = "ACKNOWLEDGED"
    NOTED = "NOTED"
    FASTER = "FASTER"
    SAME = "SAME"


#: Of a number that rose and that nobody acknowledged, whether it decides or not.
MORE = (Verdict.SLOWER, Verdict.TRADE, Verdict.NOTED)

#: Of a time that changed.
TOLD = (Verdict.SLOWER, Verdict.ACKNOWLEDGED, Verdict.FASTER)


@dataclass(frozen=True)
class Judgement:
    """A verdict and what it rests on.

    Parameters
    ----------
    verdict : Verdict
        The verdict.
    ratio : float
        Head over base; infinite where base is 0 and head is not.
    threshold : float
        Relative change up to which a time is SAME; 0 for exact numbers.
    p : float, optional
        Mann-Whitney's, corrected for the number of configurations; None if it was not tested.
    interval : tuple of float, optional
        Of the ratio of medians; None if it was not needed.
    reasons : tuple of Reason
        Why it is UNDECIDED or ACKNOWLEDGED, or does not decide; else none, or what is known beside it.
    could_be : tuple of float, optional
        Of a time that changed: where the ratio may lie, by its interval and its processes; None if that is not known.
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
        """Whether it is UNDECIDED, and may be a regression."""
        return self.verdict is Verdict.UNDECIDED and (self.could_be is None or self.could_be[1] > 1)

    @property
    def is_change(self) -> bool:
        """Whether it says that something became slower or faster."""
        return self.verdict in (Verdict.SLOWER, Verdict.FASTER)


def ratio(base: float, head: float) -> float:
    """Head over base; equal values have ratio 1, even zeros."""
    if base == head:
        return 1.0
    return head / base if base > 0 else math.inf


def change(ratio: float) -> float:
    """The relative change that a ratio stands for, whatever its direction."""
    return abs(ratio - 1)


def per_cent(ratio: float) -> float:
    """A ratio as a change in per cent, in the digits that are shown."""
    shown = round(100 * (ratio - 1), 1)
    return shown if abs(shown) < 10 else float(f"{shown:.0f}")


def percent(ratio: float) -> str:
    """A ratio as a signed change."""
    return signed(per_cent(ratio))


def signed(change: float) -> str:
    """A change in per cent, as `per_cent` has it, with its sign and unit."""
    return f"{change:+.1f} %" if abs(change) < 10 else f"{change:+.0f} %"


def exact(base: float, head: float, at_least: float = 0.0) -> Judgement:
    """Judge a counted or compiled number: the same input gives the same number, and lower is better everywhere.

    Parameters
    ----------
    base, head : float
        The number.
    at_least : float
        The relative change from which on it counts: 0 unless somebody asked for more.
    """
    found = ratio(base, head)
    order = ((head > base) - (head < base)) * (change(found) >= at_least)
    return Judgement({1: Verdict.SLOWER, 0: Verdict.SAME, -1: Verdict.FASTER}[order], found, at_least)
