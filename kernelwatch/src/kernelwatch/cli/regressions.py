"""`kernelwatch regressions`: report the standing regressions and drifts of the stored history."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.cli.failures import report_failure
from kernelwatch.config.project_root import ROOT
from kernelwatch.error_text import one_line
from kernelwatch.show.regressions_report import render_json, render_text
from kernelwatch.store import git
from kernelwatch.store.graph import UNKNOWN
from kernelwatch.workflow.select_results import CannotCompareError, format_commits, load_histories
from kernelwatch.workflow.steps import find_regressions


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the report; return the exit code that the epilog describes."""
    parser = argparse.ArgumentParser(
        description="Report the regressions and drifts that stand in the stored history, as an issue's text.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""\
A regression came with one commit, or it is a drift: steps too small for the review, whose ends it calls SLOWER.

exit codes:
  0  no regression or drift stands: each was mended or acknowledged
  1  a regression or a drift stands
  2  the results cannot be read, or the command failed unexpectedly

docs/review-a-change.md of kernelwatch says what a drift is, and how one is confirmed.
""",
    )
    parser.add_argument("--machine", help="whose results (default: all machines)")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    options = parser.parse_args(words)
    try:
        histories = load_histories(options.machine, root)
        regressions = [regression for history in histories for regression in find_regressions(history, root)]
    except (CannotCompareError, OSError, ValueError) as error:
        return report_failure("tell regressions", one_line(error))
    branches = [pair for history in histories for pair in history.graph.branches.items()]
    if unknown := {commit for commit, branch in branches if branch == UNKNOWN}:
        listed = format_commits(sorted(unknown))
        fetch = f"git fetch{' --unshallow' * git.is_shallow(root)} --all"
        print(f"left out: results of {listed}, which git does not know here; run: {fetch}", file=sys.stderr)
    if options.json:
        sys.stdout.write(render_json(regressions))
    else:
        sys.stdout.write(render_text(regressions, root, "" if sys.stdout.isatty() else "```"))
    return int(bool(regressions))
