"""The six commits of ``test_six_commits``, timed on a GPU.

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

from tests.repository import Repository
from tests.test_six_commits import AXES, CHANGES, FIRST

#: One size that takes long enough for a change of a few per cent to be seen.
TIMED_AXES = {**AXES, "MATRICES": ["4096x4096"], "SHORT_MATRICES": ["1024x1024"], "MATRICES_IN_L2": ["1024x1024"]}

#: What is timed: the two kernels that the commits change, and the copies beside them.
BENCHMARKS = ["time_transpose", "time_copy.OffsetCopy", "track_control.*Transpose", "track_control.OffsetCopy"]


def build(folder: Path) -> tuple[Repository, dict[str, str]]:
    """Make the repository; it, and its commits: message -> hash, oldest first."""
    repository = Repository(folder, TIMED_AXES)
    commits = {FIRST: repository.commit(FIRST)}
    for message, change in CHANGES.items():
        repository.replace(*change)
        commits[message] = repository.commit(message)
    return repository, commits


def keep(repository: Repository, commits: dict[str, str], target: Path) -> None:
    """Copy what asv stored, and which commit is which."""
    shutil.copytree(repository.path / "results", target / "results", dirs_exist_ok=True)
    (target / "commits.json").write_text(json.dumps(commits, indent=1) + "\n", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Measure all six; asv's exit code."""
    parser = argparse.ArgumentParser("python -m tests.six_commits_timed", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as temporary:
        repository, commits = build(Path(temporary))
        selected = [word for benchmark in BENCHMARKS for word in ("--bench", benchmark)]
        run = repository.asv("run", "--record-samples", *selected, "ALL")
        sys.stdout.write(run.stdout[-4000:] + run.stderr[-4000:])
        keep(repository, commits, options.folder)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
