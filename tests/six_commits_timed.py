"""The six commits, timed on a GPU; ``test_six_commits_timed`` replays the review of what is kept.

``python -m tests.six_commits_timed FOLDER``: FOLDER gets the results as asv stored them, and ``commits.json``: message
-> hash, oldest first.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests import six_commits
from tests.repository import SMALL_VALUES, Repository

#: One size that takes long enough for a change of a few per cent to be seen.
TIMED_VALUES = {
    **SMALL_VALUES,
    ("benchmarks/sweeps.py", "FLAG_SETS"): ("-Xptxas -O3", "-Xptxas -dlcm=cg"),
    ("benchmarks/sweeps.py", "COPY_FLAG_SETS"): ("-Xptxas -O3", "-Xptxas -dlcm=cg"),
    ("benchmarks/sweeps.py", "MATRICES"): ("4096x4096",),
    ("benchmarks/sweeps.py", "SHORT_MATRICES"): ("1024x1024",),
    ("benchmarks/sweeps.py", "MATRICES_IN_L2"): ("1024x1024",),
}

#: What is timed: the two kernels that the commits change, and the copies beside them.
BENCHMARKS = ["time_transpose", "time_copy.OffsetCopy", "track_control.*Transpose", "track_control.OffsetCopy"]


def keep(repository: Repository, commits: dict[str, str], target: Path) -> None:
    """Copy what asv stored, and which commit is which."""
    shutil.copytree(repository.results, target / "results", dirs_exist_ok=True)
    (target / "commits.json").write_text(json.dumps(commits, indent=1) + "\n", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Measure all six; asv's exit code."""
    parser = argparse.ArgumentParser("python -m tests.six_commits_timed", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as temporary:
        repository, commits = six_commits.build(Path(temporary), TIMED_VALUES)
        selected = [word for benchmark in BENCHMARKS for word in ("--bench", benchmark)]
        run = repository.asv("run", "--record-samples", *selected, "ALL")
        sys.stdout.write(run.stdout[-4000:] + run.stderr[-4000:])
        keep(repository, commits, options.folder)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
