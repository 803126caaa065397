"""`kernelwatch compare`: review two measured commits, or two compilers at one commit."""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kernelwatch.cli.failures import report_failure
from kernelwatch.config import settings
from kernelwatch.config.project_root import ROOT
from kernelwatch.review.commit_review import Review
from kernelwatch.review.conclusion import TRADE_POLICIES
from kernelwatch.review.groups import MIN_LISTED_CHANGE
from kernelwatch.show import as_json
from kernelwatch.show import report as reports
from kernelwatch.workflow.load_review import review_selection
from kernelwatch.workflow.select_results import CannotCompareError, select_commits, select_compilers


def _render_terminal(reviews: Sequence[Review], at_least: float, list_all: bool) -> str:
    return "\n".join(reports.render_review(review, at_least, list_all=list_all) for review in reviews)


#: Format -> function that renders reviews. Its arguments are the reviews, the smallest relative change to list, and
#: True to list each configuration.
FORMATS: dict[str, Callable[[Sequence[Review], float, bool], str]] = {
    "terminal": _render_terminal,
    "markdown": lambda reviews, at_least, list_all: reports.fence_text(_render_terminal(reviews, at_least, list_all)),
    "json": lambda reviews, *_: as_json.render_json(*reviews),
}


def compare(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the review; return the exit code that the epilog describes."""
    parser = argparse.ArgumentParser(
        description="Review two measured commits, or two compilers at one commit.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""\
exit codes:
  0  SAME, FASTER (BETTER without times)
     ACKNOWLEDGED: acknowledged.toml accepts what became worse
     REPAIRED: something fails only in BASE
     TRADE, if --trade allows it
  1  SLOWER (WORSE without times): a time is slower, or a deciding number rose
     TRADE: something is worse, and something else is better
     BROKEN: something fails only in HEAD
  2  FAILED: something fails in both
     UNDECIDED: no common configuration, or enough undecided times to change the verdict
     no verdict: a commit or its results are missing, or the command failed unexpectedly

Each machine and each environment of asv that measured both commits has its own verdict. The worst one is printed
first, and decides the exit code.

docs/review.md of kernelwatch has the rules.
""",
    )
    add = parser.add_argument
    revision = "git revision, such as origin/main; with --compilers, a release of CUDA"
    add("base", metavar="BASE", help=revision)
    add("head", metavar="HEAD", nargs="?", default="HEAD", help=f"{revision} (default: HEAD)")
    add(
        "--compilers",
        action="store_true",
        help="BASE and HEAD are releases of CUDA, such as 13.0.2; compare them at --commit",
    )
    add("--commit", help="the commit for --compilers (default: the newest that both compiled)")
    add("--machine", action="append", help="machine that measured both (default: all machines)")
    add("--format", choices=FORMATS, default="terminal", help="format of the review (default: %(default)s)")
    add("--all", action="store_true", help="list all changed configurations, even with small changes")
    listed = "list changes of at least this size (default: 1%%); verdict and exit code use all changes"
    add("--at-least", type=_parse_share, default=MIN_LISTED_CHANGE, metavar="PERCENT", help=listed)
    traded = (
        "when a TRADE has exit code 0. none: never; numbers: if no time is SLOWER and no number ROSE; "
        "all: always (default: %(default)s)"
    )
    add("--trade", choices=TRADE_POLICIES, default=settings.trade_policy(), help=traded)
    options = parser.parse_args(words)
    name, *further = options.machine or [None]
    if further:  # do not choose one silently
        parser.error(f"--machine is given twice, as {name} and {further[0]}, but machines cannot be compared; give one")
    if options.commit and not options.compilers:
        parser.error(f"--commit {options.commit} needs --compilers; to compare two commits, give only BASE and HEAD")
    if options.trade not in TRADE_POLICIES:
        parser.error(f"trade in pyproject.toml is {options.trade!r}; allowed are {', '.join(TRADE_POLICIES)}")
    try:
        if options.compilers:
            selections = [select_compilers(options.base, options.head, options.commit, name, root)]
        else:
            selections = select_commits(options.base, options.head, name, root)
        reviews = [replace(review_selection(selection, root), trade=options.trade) for selection in selections]
    except CannotCompareError as error:
        return report_failure("compare", error)
    reviews.sort(key=Review.sort_key)
    sys.stdout.write(FORMATS[options.format](reviews, 0.0 if options.all else options.at_least, options.all))
    return reviews[0].exit_code


def _parse_share(text: str) -> float:
    """Return a percentage as a share: "1%" and "1" are 0.01."""
    with suppress(ValueError):
        if 0 <= (share := float(text.rstrip("% ")) / 100) < math.inf:
            return share
    raise argparse.ArgumentTypeError(f"{text!r} is not a percentage; give 0 or more, such as 0.5")
