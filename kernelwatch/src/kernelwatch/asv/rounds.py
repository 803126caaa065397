"""Runs the suite with more than its two processes a configuration, round by round, into a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwatch.project import ROOT
from kernelwatch.store.folders import RESULTS


def command(commit: str, benchmarks: Sequence[str], processes: int) -> list[str]:
    """Return the command that runs every benchmark in so many rounds: each once, then each again."""
    selected = [word for benchmark in benchmarks for word in ("--bench", benchmark)]
    more = ["--record-samples", "--attribute", f"rounds={processes}"]
    return [sys.executable, "-m", "asv", "run", *more, *selected, f"{commit}^!"]


def run(commit: str, folder: Path, benchmarks: Sequence[str], processes: int) -> None:
    """Run the suite.

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

    A benchmark that fails is missing in the results; asv's own output says why.
    """
    words = command(commit, benchmarks, processes)
    subprocess.run(words, cwd=ROOT, env=os.environ | {RESULTS: str(folder)}, check=False)
