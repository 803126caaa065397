"""`kernelwatch run` and `kernelwatch site`: asv's own commands, with what belongs to them here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.project import ROOT
from kernelwatch.store.folders import RESULTS


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


def rounds(commit: str, folder: Path, benchmarks: Sequence[str], processes: int) -> None:
    """Run the suite with more than its two processes a configuration: each once, then each again.

    A benchmark that fails is missing in the results; asv's own output says why.

    Parameters
    ----------
    commit : str
        Any git revision.
    folder : Path
        Where asv keeps the results.
    benchmarks : sequence of str
        Regular expressions as `asv run --bench` takes them.
    processes : int
        Of each configuration.
    """
    _asv(*words_of_rounds(commit, benchmarks, processes), **{RESULTS: str(folder)})


def words_of_rounds(commit: str, benchmarks: Sequence[str], processes: int) -> list[str]:
    """Return the arguments of asv that run every benchmark in so many rounds."""
    selected = [word for benchmark in benchmarks for word in ("--bench", benchmark)]
    return ["run", "--record-samples", "--attribute", f"rounds={processes}", *selected, f"{commit}^!"]


def _asv(*words: str, **variables: str) -> int:
    command = [sys.executable, "-m", "asv", *words]
    return subprocess.run(command, cwd=ROOT, env=os.environ | variables, check=False).returncode
