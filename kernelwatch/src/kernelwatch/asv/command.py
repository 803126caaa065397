"""`kernelwatch run` and `kernelwatch site`: asv's own commands, with what belongs to them here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from kernelwatch.project import ROOT


def run(words: Sequence[str] | None = None) -> int:
    """Measure, publish, print the summary; return the exit code of `asv run`, or of what failed after it.

    Parameters
    ----------
    words : sequence of str, optional
        Arguments of `asv run`; those of the command line if not given.
    """
    given = list(sys.argv[1:] if words is None else words)
    status = _asv("run", "--record-samples", *given)
    from kernelwatch.show import summary  # noqa: PLC0415 -- what shows results is not needed to measure

    return site([]) or summary.main() or status


def site(words: Sequence[str] | None = None) -> int:
    """Publish the website; return the exit code of `asv publish`, whose arguments `words` are."""
    return _asv("publish", *(sys.argv[1:] if words is None else words))


def _asv(*words: str) -> int:
    return subprocess.run([sys.executable, "-m", "asv", *words], cwd=ROOT, check=False).returncode
