"""Judges the commit that git's own bisection is at: `git bisect run kernelwatch judge METRIC`.

    git bisect start --no-checkout --first-parent BAD GOOD -- PACKAGE
    git bisect run .venv/bin/kernelwatch judge "registers KERNEL float32 -O3 sm_90"

Without --no-checkout, git would replace what judges by what it was at each commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelwatch.command import UNFORESEEN, without_traceback
from kernelwatch.project import ROOT

#: What ends the bisection: anything up to 127 would be a verdict.
ABORT = 128


def main(words: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Return 0: good; 1: bad; 125: it cannot be judged; 128: no commit can, and standard error says why."""
    try:
        code = _main(words, root)
    except SystemExit as error:  # argparse
        code = UNFORESEEN if error.code else 0
    return ABORT if code == UNFORESEEN else code


@without_traceback
def _main(words: Sequence[str] | None, root: Path) -> int:
    from kernelwatch.review import commands  # noqa: PLC0415 -- an import that fails is no verdict

    return commands.judge(words, root)
