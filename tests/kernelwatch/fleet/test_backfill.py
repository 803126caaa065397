"""The command in a stranger's repository, on two workers without a GPU, one of which is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path

import psutil
import pytest

from kernelwatch.store import folders, record
from tests.faults.test_orphans import processes
from tests.kernelwatch.fleet.test_merge import documents
from tests.kernelwatch.strangers import STRANGERS, made

pytestmark = pytest.mark.fleet

STRANGER = STRANGERS["CUDA as a text in Python"]


def test_killed_worker(tmp_path: Path) -> None:
    """What the killed worker had begun, another begins anew: the results are those of one run of asv."""
    project, commits = made(STRANGER, tmp_path)
    commits = commits[1:3]
    plain = tmp_path / "plain"
    asked = f"printf '%s\\n' {' '.join(commits)} | {folders.RESULTS}={plain} asv run --record-samples HASHFILE:-"
    done = project.run("sh", "-c", asked)
    assert done.returncode == 0, done.stdout + done.stderr
    for number in range(2):  # workers find asv's environments made
        clone = project.path / ".asv" / "fleet" / f"{os.uname().nodename}-{number}" / "clone"
        shutil.copytree(project.path / ".asv" / "env", clone / ".asv" / "env", symlinks=True)
    command = ["kernelwatch", "fleet", "--without-gpu", "2", f"{commits[0]}^..{commits[1]}"]
    pipe, mark = subprocess.PIPE, str(uuid.uuid4())
    environment = project.environment | {"MARK": mark}
    with subprocess.Popen(
        command, cwd=project.path, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True
    ) as driver:
        assert driver.stdout is not None
        runs: list[int] = []
        while not runs and driver.poll() is None:
            time.sleep(0.02)
            runs = sorted(each for each, line in processes(mark).items() if " asv run " in line)
        for run in runs[:1]:
            os.kill(psutil.Process(run).ppid(), signal.SIGKILL)
        said = driver.stdout.read()
    assert (driver.returncode, bool(runs), "2 of 2 shards" in said) == (0, True, True), said
    stored = folders.local(project.path / "results")  # which do not know this machine yet
    assert documents(stored) == documents(plain)
    (machine,) = (path.name for path in stored.iterdir() if path.is_dir())
    assert sorted(run["commits"] for run in record.read(stored, machine)) == sorted([each] for each in commits)
