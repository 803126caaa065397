"""The comparison as Markdown for a comment under a pull request."""

from __future__ import annotations

from kernelwatch.review.comparison import Comparison
from kernelwatch.show.report import report
from ptxcount.gate.markdown import LIMIT, comment

#: What the comment is about, by which a workflow finds its own on a machine again.
ABOUT = "compare on {}"


def render(comparison: Comparison, limit: int = LIMIT, at_least: float = 0.0) -> str:
    """The verdict, the largest changes, and what changed by kernel and flags; folded: each configuration, worst first.

    Parameters
    ----------
    comparison : Comparison
        The two commits.
    limit : int
        The most characters.
    at_least : float
        The relative change from which on one is listed, unless it is folded.
    """
    return comment(ABOUT.format(comparison.machine), report(comparison, at_least), limit)
