"""The command: `python -m report.compare BASE HEAD`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import ROOT
from benchmarks.command import without_traceback
from report.compare import as_json, markdown, terminal
from report.compare.commits import CannotCompareError, find
from report.compare.comparison import compare

FORMATS = {"terminal": terminal.render, "markdown": markdown.render, "json": as_json.render}

_EPILOG = """\
exit codes:
  0  no regression: every configuration that both commits have was judged, and none is SLOW
  1  regression: a configuration is SLOW, or fails in HEAD and did not in BASE
  2  could not judge: a commit or its results are missing, no configuration is in both,
     or none is SLOW but some are UNDECIDED; or something unforeseen befell the command

docs/review.md says what the verdicts rest on.
"""


@without_traceback
def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the comparison; return the exit code that the epilog describes."""
    parser = argparse.ArgumentParser(
        "python -m report.compare",
        description="Say what changed between two measured commits.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("base", metavar="BASE", help="any git revision, for example origin/main")
    parser.add_argument("head", metavar="HEAD", nargs="?", default="HEAD", help="any git revision (default: HEAD)")
    parser.add_argument("--machine", help="where both were measured (default: this machine, or the only one)")
    parser.add_argument("--format", choices=FORMATS, default="terminal")
    options = parser.parse_args(words)
    try:
        comparison = compare(find(options.base, options.head, options.machine, root), root)
    except CannotCompareError as error:
        print(f"cannot compare: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(FORMATS[options.format](comparison))
    return comparison.exit_code


if __name__ == "__main__":
    sys.exit(main())
