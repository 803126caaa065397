"""`kernelwatch regressions`: report the unfixed regressions and drifts of the stored history."""

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
        description="Report the unfixed regressions and drifts of the stored history, as the text of an issue.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""\
A regression is a change between neighbouring measured commits. A drift is a series of changes that are each too small
for a verdict, but not their sum.

exit codes:
  0  none is open: there was none, or each was fixed or acknowledged
  1  a regression or a drift is open
  2  the results cannot be read, or the command failed unexpectedly

docs/review-a-change.md of kernelwatch explains drifts and how to confirm one.
""",
    )
    parser.add_argument("--machine", help="machine of the results (default: all machines)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(words)
    try:
        histories = load_histories(options.machine, root)
        regressions = [regression for history in histories for regression in find_regressions(history, root)]
    except (CannotCompareError, OSError, ValueError) as error:
        return report_failure("report regressions", one_line(error))
    branches = [pair for history in histories for pair in history.graph.branches.items()]
    if unknown := {commit for commit, branch in branches if branch == UNKNOWN}:
        listed = format_commits(sorted(unknown))
        fetch = "git fetch --unshallow && git fetch --all" if git.is_shallow(root) else "git fetch --all"
        print(f"left out: results of {listed}, which this repository does not have; run: {fetch}", file=sys.stderr)
    if git.is_shallow(root) and not all(history.graph.parents for history in histories):
        problem = "this clone is shallow and lacks the measured commits, so they are ordered by date"
        print(f"{problem}; run: git fetch --unshallow", file=sys.stderr)
    if options.json:
        sys.stdout.write(render_json(regressions))
    else:
        sys.stdout.write(render_text(regressions, root, "" if sys.stdout.isatty() else "```"))
    return int(bool(regressions))
