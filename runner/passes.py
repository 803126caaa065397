"""The suite run again and again on one commit, each pass in fresh processes, its results in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from runner.asv_plugin import RESULTS

ROOT = Path(__file__).parent.parent


def run(commit: str, folders: Sequence[Path], benchmarks: Sequence[str]) -> None:
    """Run one pass into each folder, one process a configuration and pass.

    Parameters
    ----------
    commit : any git revision.
    folders : where asv keeps each pass's results.
    benchmarks : regular expressions as `asv run --bench` takes them.

    Raises
    ------
    CalledProcessError : asv failed; its own output says why.
    """
    selected = [word for benchmark in benchmarks for word in ("--bench", benchmark)]
    words = [
        sys.executable,
        "-m",
        "asv",
        "run",
        "--record-samples",
        "--attribute",
        "rounds=1",
        *selected,
        f"{commit}^!",
    ]
    for number, folder in enumerate(folders, start=1):
        print(f"pass {number} of {len(folders)}", flush=True)
        subprocess.run(words, cwd=ROOT, env=os.environ | {RESULTS: str(folder)}, check=True)
