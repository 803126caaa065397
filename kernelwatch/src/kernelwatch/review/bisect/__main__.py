"""The command: `kernelwatch bisect METRIC GOOD BAD`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.command import without_traceback
from kernelwatch.project import ROOT
from kernelwatch.review.bisect import report
from kernelwatch.review.bisect.metric import UnknownMetricError
from kernelwatch.review.bisect.probe import PackageError
from kernelwatch.review.bisect.search import search
from kernelwatch.review.commits import CannotCompareError

_EPILOG = """\
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

docs/find-the-commit.md says how the search goes.
"""


@without_traceback
def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print what was found; return the exit code that the epilog describes, which is 2 whatever goes wrong."""
    parser = argparse.ArgumentParser(
        description="Find the commit that moved a number.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("metric", metavar="METRIC", help="words of the number; see below")
    parser.add_argument("good", metavar="GOOD", help="any git revision: before the change")
    parser.add_argument("bad", metavar="BAD", nargs="?", default="HEAD", help="after it (default: HEAD)")
    parser.add_argument("--machine", help="whose times count (default: this one, or the only one that has both)")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    options = parser.parse_args(words)
    try:
        found = search(options.metric, options.good, options.bad, options.machine, root, _say)
    except (UnknownMetricError, CannotCompareError, PackageError) as error:
        print(f"cannot search: {error}", file=sys.stderr)
        return 2
    sys.stdout.write((report.as_json if options.json else report.text)(found))
    return found.exit_code


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
