"""The commands of the review, each with its words: what `kernelwatch --help` lists of it."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kernelwatch import settings
from kernelwatch.command import UNFORESEEN, one_line, without_traceback
from kernelwatch.project import ROOT
from kernelwatch.review import drift as drifts
from kernelwatch.review import issue
from kernelwatch.review.bisect import report
from kernelwatch.review.bisect.search import judge_one, search
from kernelwatch.review.commits import CannotCompareError, few, find, histories, of_compilers
from kernelwatch.review.comparison import Comparison
from kernelwatch.review.comparison import compare as compared
from kernelwatch.review.conclusion import TRADES
from kernelwatch.review.consecutive import consecutive
from kernelwatch.review.regressions import standing
from kernelwatch.show import as_json
from kernelwatch.show import report as reports
from kernelwatch.store import folders
from kernelwatch.store.graph import UNKNOWN
from kernelwatch.store.results import History


def _text(found: Sequence[Comparison], at_least: float, every: bool) -> str:
    return "\n".join(reports.render(each, at_least, every=every) for each in found)


#: A format's name -> what writes comparisons: the worst first, the change from which on one is listed, whether all are.
FORMATS: dict[str, Callable[[Sequence[Comparison], float, bool], str]] = {
    "terminal": _text,
    "markdown": lambda found, at_least, every: reports.fenced(_text(found, at_least, every)),
    "json": lambda found, *_: as_json.render(*found),
}

#: What is listed unless somebody asks for less or more.
AT_LEAST = 0.01


def _parser(description: str, epilog: str = "", json: bool = False) -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, epilog=epilog, formatter_class=raw)
    if json:
        parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    return parser


def _cannot(do: str, error: object) -> int:
    print(f"cannot {do}: {error}", file=sys.stderr)
    return UNFORESEEN


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@without_traceback
def compare(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the comparison; return the exit code that the epilog describes, which is 2 whatever goes wrong."""
    parser = _parser(
        "Say what changed between two measured commits, or between two compilers at one commit.",
        """\
exit codes:
  0  FASTER; SAME; ACKNOWLEDGED: what became worse is accepted by acknowledged.toml; a TRADE that passes by --trade;
     REPAIRED: it failed in BASE alone
  1  SLOWER: a time is, or a number that decides rose; TRADE: something is faster, too; BROKEN: it fails in HEAD alone
  2  FAILED: it fails in both; UNDECIDED: so many times are that they could turn the verdict, or no configuration is
     in both; or a commit or its results are missing; or something unforeseen befell the command

Each machine and each of asv's environments that measured both is judged. The worst is printed first and decides.

docs/review.md of kernelwatch has the rules.
""",
    )
    add = parser.add_argument
    add("base", metavar="BASE", help="any git revision, for example origin/main")
    add("head", metavar="HEAD", nargs="?", default="HEAD", help="any git revision (default: HEAD)")
    add("--compilers", action="store_true", help="BASE and HEAD are releases of CUDA, such as 13.0.2, at one commit")
    add("--commit", help="that commit (default: the newest that both compiled)")
    add("--machine", action="append", help="where both were measured (default: all machines)")
    add("--format", choices=FORMATS, default="terminal")
    add("--all", action="store_true", help="list each configuration that changed, however little")
    listed = "list changes of so much and more (default: 1%%); verdict and exit code count all of them"
    add("--at-least", type=_share, default=AT_LEAST, metavar="PERCENT", help=listed)
    judged = "judge smaller changes as the same, in the verdict and the exit code too (default: 0%%)"
    add("--judge-at-least", type=_share, default=0.0, metavar="PERCENT", help=judged)
    traded = "what may be worse in a TRADE with exit code 0; numbers: beside faster times (default: %(default)s)"
    add("--trade", choices=TRADES, default=settings.trade(), help=traded)
    options = parser.parse_args(words)
    name, *others = options.machine or [None]
    if others:  # none of them wins silently
        parser.error(f"--machine is given twice, as {name} and as {others[0]}: two machines are not compared; give one")
    if options.trade not in TRADES:
        parser.error(f"trade in pyproject.toml is {options.trade!r}; allowed are {', '.join(TRADES)}")
    try:
        given = options.base, options.head
        every = [of_compilers(*given, options.commit, name, root)] if options.compilers else find(*given, name, root)
        found = [replace(compared(one, root, options.judge_at_least), trade=options.trade) for one in every]
    except CannotCompareError as error:
        return _cannot("compare", error)
    found.sort(key=Comparison.badness)
    sys.stdout.write(FORMATS[options.format](found, 0.0 if options.all else options.at_least, options.all))
    return found[0].exit_code


def _share(text: str) -> float:
    """Read "1%" or "1" as 0.01."""
    share = float(text.rstrip("% ")) / 100
    if not (math.isfinite(share) and share >= 0):
        raise ValueError
    return share


@without_traceback
def drift(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the drifts; return the exit code."""
    parser = _parser(
        "Say what became slower in steps too small for the review.",
        """\
exit codes:
  0  no drift
  1  a drift: the review calls the last commit of a row SLOWER than the first
  2  undecided: so many times are that they could hide one, or no time of a machine has enough commits in a row;
     or something unforeseen happened

docs/drift.md of kernelwatch says what a drift is, and how one is confirmed.
""",
        json=True,
    )
    parser.add_argument("--machine", help="whose results (default: all machines)")
    options = parser.parse_args(words)
    names = [options.machine] if options.machine else folders.machines(folders.results(root / "results"))
    try:
        every = [found for name in names if (found := drifts.find(History(name, root)))]
    except (FileNotFoundError, ValueError, CannotCompareError) as error:
        return _cannot("look for drifts", one_line(error))
    if not every:
        return _cannot("look for drifts", "no machine has times; run: asv run --record-samples HEAD^! where a GPU is")
    sys.stdout.write((drifts.document if options.json else drifts.text)(every))
    return drifts.exit_code(every)


#: Of the commands that search.
_WHOSE = "whose times count (default: this machine's, or those of the only one that has both)"


@without_traceback
def bisect(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print what was found; return the exit code that the epilog describes, which is 2 whatever goes wrong."""
    parser = _parser(
        "Find the commit that moved a number.",
        """\
METRIC is words of one of the suite's configurations: a metric (load_sectors, registers, time, ...), a kernel,
a dtype, flags, an architecture, arguments (rows=1000), or the whole name that the review prints. Words that
are left out stand for all; of several configurations the one that changed most is searched, a worse one first.

exit codes:
  0    found: the commit is printed
  1    good and bad do not differ, by the review's verdict
  2    cannot search: the metric or a commit is unknown, one of both has no number, or something unforeseen befell
       the command
  125  undecidable: some commits do not build or were not timed, and the culprit is among those that are printed,
       or no single commit made the change

docs/find-the-commit.md of kernelwatch says how the search goes.
""",
        json=True,
    )
    parser.add_argument("metric", metavar="METRIC", help="words of the number; see below")
    parser.add_argument("good", metavar="GOOD", help="any git revision: before the change")
    parser.add_argument("bad", metavar="BAD", nargs="?", default="HEAD", help="after it (default: HEAD)")
    parser.add_argument("--machine", help=_WHOSE)
    options = parser.parse_args(words)
    try:
        found = search(options.metric, options.good, options.bad, options.machine, root, _say)
    except CannotCompareError as error:
        return _cannot("search", error)
    sys.stdout.write((report.as_json if options.json else report.text)(found))
    return found.exit_code


@without_traceback
def judge(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print what is said of the commit that git's bisection is at; return 0, 1, 125, or 2 where none can be judged."""
    parser = _parser(
        "Judge the commit that git bisect is at, between its first GOOD and its first BAD.",
        """\
git bisect start --no-checkout --first-parent BAD GOOD -- PACKAGE
git bisect run kernelwatch judge "registers KERNEL float32 -O3 sm_90"

Without --no-checkout, git would replace what judges by what it was at each commit.

exit codes, as git bisect run takes them: 0 good, 1 bad, 125 cannot tell, 128 stop
""",
    )
    parser.add_argument("metric", metavar="METRIC", help="words of one configuration, as of the command bisect")
    parser.add_argument("--machine", help=_WHOSE)
    options = parser.parse_args(words)
    try:
        step = judge_one(options.metric, options.machine, root)
    except CannotCompareError as error:
        return _cannot("judge", error)
    print(f"{step.verdict}: {'' if step.value is None else f'{step.value:g}, '}{step.source} {step.reason}".rstrip())
    return {"good": 0, "bad": 1, "skip": 125}[step.verdict]


@without_traceback
def regressions(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the text of the issue; return 0, or 2 where the results cannot be read."""
    _parser("Say which regressions of the stored history stand, as the text of an issue.").parse_args(words)
    try:
        known = histories(None, root)
    except (CannotCompareError, OSError, ValueError) as error:
        return _cannot("tell regressions", one_line(error))
    found = [each for one in known for each in standing(one.machine, consecutive(one))]
    unknown = {commit for one in known for commit, branch in one.graph.branches.items() if branch == UNKNOWN}
    if unknown:
        _say(f"left out: {few(sorted(unknown))}, which git does not know here; run: git fetch --unshallow --all")
    sys.stdout.write(issue.render(found, root))
    return 0
