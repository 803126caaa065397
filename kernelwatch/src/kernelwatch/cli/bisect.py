"""`kernelwatch bisect` finds the commit that changed a number; `git bisect run` can call `kernelwatch judge`."""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.cli.failures import report_failure
from kernelwatch.config.project_root import ROOT
from kernelwatch.show.search_report import render_json, render_text
from kernelwatch.store import git
from kernelwatch.toolchain import releases
from kernelwatch.workflow.bisect.metric import match_configurations
from kernelwatch.workflow.bisect.numbers import judge_value, open_numbers
from kernelwatch.workflow.bisect.search import search_culprit
from kernelwatch.workflow.select_results import CannotCompareError, resolve_commit

_MACHINE_HELP = "machine whose times to use (default: this machine, or else the only one with {})"


def bisect(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the outcome of the search; return the exit code that the epilog describes."""
    parser = argparse.ArgumentParser(
        description="Find the commit that changed a number.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""\
METRIC is one or more words that select configurations of the suite: a metric (load_sectors, registers, time, ...),
a kernel, a dtype, flags, an architecture, an argument (rows=1000), or the whole name in the review. If several
configurations match, the search takes the one with the worst verdict, and of several the largest change.

exit codes:
  0    found: the commit is printed
  1    the review sees no difference between GOOD and BAD, or no commit between them touches the measured code
  2    cannot search: the metric or a commit is unknown, a commit has no number, or the command failed unexpectedly
  125  undecided: the review of GOOD and BAD is undecided; or some commits do not compile or were not timed, and the
       culprit is among the printed commits; or no single commit made the change

docs/find-the-commit.md of kernelwatch explains the search.
""",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("metric", metavar="METRIC", help="words that select the number; see below")
    parser.add_argument("good", metavar="GOOD", help="git revision before the change")
    parser.add_argument(
        "bad", metavar="BAD", nargs="?", default="HEAD", help="git revision after the change (default: HEAD)"
    )
    parser.add_argument("--machine", help=_MACHINE_HELP.format("times of both commits"))
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
    """Print the verdict on the commit that git bisect tests; return 0: good, 1: bad, 125: no number, 2: failed."""
    parser = argparse.ArgumentParser(
        description="Judge the commit that git bisect is testing, by the number at GOOD and at BAD.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="""\
git bisect start --no-checkout --first-parent BAD GOOD -- PACKAGE
git bisect run kernelwatch judge "registers KERNEL float32 -O3 sm_90" --between 32 40

Without --no-checkout, git would check out each commit, and so replace the code that judges.

exit codes, for git bisect run: 0 good, 1 bad, 125 no number, 128 stop
""",
    )
    parser.add_argument(
        "metric", metavar="METRIC", help="words that select one configuration, as in kernelwatch bisect"
    )
    parser.add_argument("--machine", help=_MACHINE_HELP.format("results"))
    ends = "the values at GOOD and at BAD, in the unit of the results: times in seconds"
    parser.add_argument("--between", nargs=2, type=float, metavar="VALUE", help=ends, required=True)
    options = parser.parse_args(words)
    good, bad = options.between
    if good == bad or not (math.isfinite(good) and math.isfinite(bad)):
        parser.error(f"--between {good:g} {bad:g}: no value is nearer to one end; give two different finite values")
    try:
        configuration, *further = match_configurations(options.metric)
        if further:
            matches = f"METRIC matches {1 + len(further)} configurations"
            raise CannotCompareError(f"{matches}; give the full name of one, such as {configuration.name!r}")
        commit = git.find_commit(Path.cwd(), "BISECT_HEAD")
        if commit is None:
            advice = "run: git bisect start --no-checkout --first-parent BAD GOOD"
            raise CannotCompareError(f"git bisect does not run in {Path.cwd()}, or it checks out commits; {advice}")
        with open_numbers([configuration], options.machine, root) as commit_numbers:
            value = commit_numbers.find_value(commit, configuration)
    except (CannotCompareError, git.GitError) as error:
        return report_failure("judge", error)
    verdict = judge_value(value, good, bad)
    print(f"skip: {commit[:8]} has no number of {configuration.name}" if value is None else f"{verdict}: {value:g}")
    return {"good": 0, "bad": 1, "skip": 125}[verdict]
