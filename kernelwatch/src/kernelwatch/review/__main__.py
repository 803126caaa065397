"""The command: `kernelwatch compare BASE HEAD`."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kernelwatch import settings
from kernelwatch.command import without_traceback
from kernelwatch.project import ROOT
from kernelwatch.review.commits import CannotCompareError, find, of_compilers
from kernelwatch.review.comparison import Comparison, compare
from kernelwatch.review.conclusion import NONE, TRADES
from kernelwatch.show import as_json, markdown, terminal

#: A format's name -> what writes it: the comparison, the change from which on one is listed, whether all are.
FORMATS: dict[str, Callable[[Comparison, float, bool], str]] = {
    "terminal": lambda comparison, at_least, every: terminal.render(comparison, at_least, every=every),
    "markdown": lambda comparison, at_least, _: markdown.render(comparison, at_least=at_least),
    "json": lambda comparison, *_: as_json.render(comparison),
}

#: What is listed unless somebody asks for less or more.
AT_LEAST = 0.01

_EPILOG = """\
exit codes:
  0  FASTER; SAME; ACKNOWLEDGED: what became worse is accepted by acknowledged.toml; a TRADE that passes by --trade
  1  SLOWER: a time is, or a number that decides rose; TRADE: something is faster, too; BROKEN: it fails in HEAD alone
  2  UNDECIDED: so many times are that they could turn the verdict, or no configuration is in both;
     or a commit or its results are missing; or something unforeseen befell the command

docs/review.md has the rules.
"""


@without_traceback
def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the comparison; return the exit code that the epilog describes, which is 2 whatever goes wrong."""
    parser = argparse.ArgumentParser(
        description="Say what changed between two measured commits, or between two compilers at one commit.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("base", metavar="BASE", help="any git revision, for example origin/main")
    parser.add_argument("head", metavar="HEAD", nargs="?", default="HEAD", help="any git revision (default: HEAD)")
    parser.add_argument(
        "--compilers", action="store_true", help="BASE and HEAD are releases of CUDA, such as 13.0.2, at one commit"
    )
    parser.add_argument("--commit", help="that commit (default: the newest that both compiled)")
    parser.add_argument(
        "--machine", action="append", help="where both were measured (default: this machine, or the only one)"
    )
    parser.add_argument("--format", choices=FORMATS, default="terminal")
    parser.add_argument("--all", action="store_true", help="list each configuration that changed, however little")
    parser.add_argument(
        "--at-least",
        type=_share,
        default=AT_LEAST,
        metavar="PERCENT",
        help="list changes of so much and more (default: 1%%); verdict and exit code count all of them",
    )
    parser.add_argument(
        "--judge-at-least",
        type=_share,
        default=0.0,
        metavar="PERCENT",
        help="judge smaller changes as the same, in the verdict and the exit code too (default: 0%%)",
    )
    parser.add_argument(
        "--trade",
        choices=TRADES,
        default=settings.trade(),
        help="what may be worse in a TRADE with exit code 0; numbers: beside faster times (default: %(default)s)",
    )
    parser.add_argument("--no-trade", action="store_const", dest="trade", const=NONE, help="as --trade none")
    options = parser.parse_args(words)
    machine, *others = options.machine or [None]
    if others:  # none of them wins silently
        parser.error(
            f"--machine is given twice, as {machine} and as {others[0]}: two machines are not compared, "
            "only two commits on one; give one, here or as MACHINE=NAME"
        )
    if options.trade not in TRADES:
        parser.error(f"trade in pyproject.toml is {options.trade!r}; allowed are {', '.join(TRADES)}")
    try:
        given = options.base, options.head
        if options.compilers:
            sides = of_compilers(*given, options.commit, machine, root)
        else:
            sides = find(*given, machine, root)
        comparison = replace(compare(sides, root, options.judge_at_least), trade=options.trade)
    except CannotCompareError as error:
        print(f"cannot compare: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(FORMATS[options.format](comparison, 0.0 if options.all else options.at_least, options.all))
    return comparison.exit_code


def _share(text: str) -> float:
    """Read "1%" or "1" as 0.01."""
    share = float(text.rstrip("% ")) / 100
    if not (math.isfinite(share) and share >= 0):
        raise ValueError
    return share
