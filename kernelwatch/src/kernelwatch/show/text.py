"""Formats of verdicts, numbers and names in reports."""

from kernelwatch.review.verdict import Verdict
from kernelwatch.suite.benchmark_names import TIMED
from ptxcount.cli.options import plain

#: Option of nvcc that passes the next flag to ptxas. Reports leave it out, and explain it with SHORTENED_FLAGS.
PASSING_OPTION = "-Xptxas "

#: Sentence below a report with shortened flags.
SHORTENED_FLAGS = "Flags are shown without -Xptxas: -O3 stands for -Xptxas -O3."

#: Units of time, in seconds, with their names, the largest first.
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))

#: Words for a verdict on counted or compiled numbers.
_EXACT_WORDS = {Verdict.SLOWER: "ROSE", Verdict.FASTER: "FELL"}

#: Words for the verdict on a comparison without times.
_UNTIMED_WORDS = {Verdict.SLOWER: "WORSE", Verdict.FASTER: "BETTER"}


def format_quantity(value: float, unit: str) -> str:
    """Format a value: seconds with one of the units s, ms, µs and ns, other values without a unit."""
    if unit != "seconds":
        return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:.4g}"
    seconds, name = next((row for row in _UNITS if abs(value) >= row[0]), _UNITS[-1])
    return f"{value / seconds:.4g} {name}"


def name_verdict(verdict: Verdict, kind: str) -> str:
    """Return the word for a verdict on a configuration: counted and compiled numbers have ROSE and FELL."""
    return verdict.value if kind == TIMED else _EXACT_WORDS.get(verdict, verdict.value)


def name_conclusion(conclusion: Verdict, *, is_timed: bool) -> str:
    """Return the word for the verdict on a review: WORSE and BETTER replace SLOWER and FASTER if nothing was timed."""
    return conclusion.value if is_timed else _UNTIMED_WORDS.get(conclusion, conclusion.value)


def shorten_flags(flags: str) -> str:
    """Return nvcc's flags without -Xptxas."""
    return plain(flags).replace(PASSING_OPTION, "")
