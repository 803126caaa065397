"""How verdicts, numbers and names are written in the reports that people read."""

from __future__ import annotations

from kernelwatch.review.verdict import Verdict
from kernelwatch.store.points import TIMED
from ptxcount.cli.options import plain

__all__ = ["conclusion_word", "plain", "quantity", "short_flags", "word"]

#: Seconds from which on a unit is used, and its name.
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (0.0, "ns"))

#: What a reader calls a verdict on counted or compiled numbers.
_EXACT_WORDS = {Verdict.SLOWER: "ROSE", Verdict.FASTER: "FELL"}

#: What a reader calls the verdict on a comparison without times.
_UNTIMED_WORDS = {Verdict.SLOWER: "WORSE", Verdict.FASTER: "BETTER"}


def quantity(value: float, unit: str) -> str:
    """A value with a unit if that is of time; others are named by their benchmarks."""
    if unit != "seconds":
        return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.4g}"
    least, name = next((row for row in _SECONDS if abs(value) >= row[0]), _SECONDS[-1])
    return f"{value / (least or 1e-9):.4g} {name}"


def word(verdict: Verdict, kind: str) -> str:
    """A verdict as a reader says it: SLOWER and FASTER are times, ROSE and FELL numbers."""
    return verdict.value if kind == TIMED else _EXACT_WORDS.get(verdict, verdict.value)


def conclusion_word(conclusion: Verdict, *, is_timed: bool) -> str:
    """The verdict on a comparison: SLOWER and FASTER need a time, WORSE and BETTER are those of numbers alone."""
    return conclusion.value if is_timed else _UNTIMED_WORDS.get(conclusion, conclusion.value)


def short_flags(flags: str) -> str:
    """The flags of nvcc without the words that pass them on."""
    return plain(flags).replace("-Xptxas ", "")
