"""`kernelwatch bisect`: find the commit that moved a number; and its judge, `kernelwatch judge`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.cli.failures import report_failure
from kernelwatch.config.project_root import ROOT
from kernelwatch.show.search_report import render_json, render_text
from kernelwatch.store import git
from kernelwatch.toolchain import releases
from kernelwatch.workflow.bisect.metric import match_configurations
from kernelwatch.workflow.bisect.numbers import open_numbers
from kernelwatch.workflow.bisect.search import search_culprit
from kernelwatch.workflow.select_results import CannotCompareError, resolve_commit

_WHOSE = "whose times count (default: this machine's, or those of the only one that has both)"


def bisect(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the outcome of the search; return the exit code that the epilog describes, 2 for any failure."""
    parser = argparse.ArgumentParser(
        description="Find the commit that moved a number.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""\
METRIC is words of one of the suite's configurations: a metric (load_sectors, registers, time, ...), a kernel,
a dtype, flags, an architecture, arguments (rows=1000), or the whole name that the review prints. Words that
are left out stand for all; of several configurations the one that changed most is searched, a worse one first.

exit codes:
  0    found: the commit is printed
  1    good and bad do not differ, by the review's verdict, or no commit between them touches what is measured
  2    cannot search: the metric or a commit is unknown, one of both has no number, or the command failed
       unexpectedly
  125  undecidable: some commits do not build or were not timed, and the culprit is among those that are printed,
       or no single commit made the change

docs/find-the-commit.md of kernelwatch says how the search goes.
""",
    )
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.add_argument("metric", metavar="METRIC", help="words of the number; see below")
    parser.add_argument("good", metavar="GOOD", help="git revision before the change")
    parser.add_argument(
        "bad", metavar="BAD", nargs="?", default="HEAD", help="git revision after the change (default: HEAD)"
    )
    parser.add_argument("--machine", help=_WHOSE)
    options = parser.parse_args(words)
    try:
        configurations = match_configurations(options.metric)
        releases.use_requested_release()
        good, bad = (resolve_commit(revision, root, []) for revision in (options.good, options.bad))
        with open_numbers(configurations, options.machine, root) as commit_numbers:
            outcome = search_culprit(options.metric, configurations, good, bad, commit_numbers)
            sys.stdout.write(render_json(outcome) if options.json else render_text(outcome, root))
    except (CannotCompareError, git.GitError) as error:
        return report_failure("search", error)
    return outcome.exit_code


def judge(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the verdict on the commit that git's bisection is at; return 0, 1, 125, or 2 if it cannot be judged."""
    parser = argparse.ArgumentParser(
        description="Judge the commit that git bisect is at, by the number at GOOD and at BAD.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""\
git bisect start --no-checkout --first-parent BAD GOOD -- PACKAGE
git bisect run kernelwatch judge "registers KERNEL float32 -O3 sm_90" --between 32 40

Without --no-checkout, git would replace what judges by what it was at each commit.

exit codes, as git bisect run takes them: 0 good, 1 bad, 125 cannot tell, 128 stop
""",
    )
    parser.add_argument("metric", metavar="METRIC", help="words of one configuration, as of the command bisect")
    parser.add_argument("--machine", help=_WHOSE)
    ends = "the number at GOOD and at BAD, as kernelwatch compare prints it"
    parser.add_argument("--between", nargs=2, type=float, metavar="VALUE", help=ends, required=True)
    options = parser.parse_args(words)
    try:
        configuration, *further = match_configurations(options.metric)
        if further:
            raise CannotCompareError(f"METRIC matches {1 + len(further)} configurations; give the whole name of one")
        commit = git.text(Path.cwd(), "rev-parse", "--verify", "BISECT_HEAD")
        with open_numbers([configuration], options.machine, root) as commit_numbers:
            value = commit_numbers.find_value(commit, configuration)
    except git.GitError as error:
        return report_failure("judge", f"{error}; begin with git bisect start --no-checkout")
    except CannotCompareError as error:
        return report_failure("judge", error)
    if value is None:
        print(f"skip: {commit[:8]} has no number")
        return 125
    good, bad = (abs(value - end) for end in options.between)
    print(f"{'bad' if good > bad else 'good'}: {value:g}")
    return int(good > bad)
