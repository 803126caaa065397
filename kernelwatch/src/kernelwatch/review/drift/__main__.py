"""The command: `kernelwatch drift`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.command import one_line, without_traceback
from kernelwatch.project import ROOT
from kernelwatch.review.drift import drifts, report
from kernelwatch.store import folders
from kernelwatch.store.results import History

_EPILOG = """\
exit codes:
  0  no drift
  1  a drift is confirmed: one run measured both commits in turns, and the review called head SLOWER
  2  could not judge: a drift is suspected, or no time of a machine has enough commits in a row;
     or something unforeseen happened

docs/drift.md says what a drift is, and how one is confirmed.
"""


@without_traceback
def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print the drifts; return the exit code."""
    parser = argparse.ArgumentParser(
        description="Say what became slower in steps too small for the review.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--machine", help="whose results (default: all machines)")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    options = parser.parse_args(words)
    names = [options.machine] if options.machine else folders.machines(root / "results")
    try:
        histories = [History(name, root) for name in names]
        found = [drifts.find(each) for each in histories if options.machine or drifts.has_times(each)]
    except (FileNotFoundError, ValueError) as error:
        print(f"cannot look for drifts: {one_line(error)}", file=sys.stderr)
        return 2
    if not found:
        print(
            "cannot look for drifts: no machine has times; run: asv run --record-samples HEAD^! where a GPU is",
            file=sys.stderr,
        )
        return 2
    sys.stdout.write((report.as_json if options.json else report.text)(found))
    return report.exit_code(found)
