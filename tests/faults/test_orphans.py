"""Runs that are killed: no process is left behind, and the next run clears away their files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import ROOT
from runner import scratch

#: So many runs are killed; `make faults` asks for more.
RUNS = max(2, int(os.environ.get("COALESCING_WATCH_KILLS", "20")) // 10)

#: Seconds in which every process has to be gone.
PATIENCE = 5.0

#: asv's fork server with a benchmark's process: both tell their number, and would sleep on.
SERVER = """
import os, time
import benchmarks.mortal
os.fork()
os.write(1, b"%d\\n" % os.getpid())
time.sleep(20)
"""

#: A run that starts the server as asv does, in a session of its own, after a temporary file.
RUN = f"""
import subprocess, sys, tempfile
from runner import scratch
with scratch.of_a_run() as folder:
    tempfile.mkstemp()
    print(folder, flush=True)
    subprocess.run([sys.executable, "-c", {SERVER!r}], start_new_session=True)
"""


#: A process of a run that compiles; nvcc and what it began tell their numbers, hear no SIGTERM, and hang.
COMPILE = """
import sys
from gpu_kernels import nvcc
nvcc.call(["/bin/sh", "-c", "trap '' TERM; sleep 60 & echo $$ $! > " + sys.argv[1] + "; wait; sleep 60"])
"""


def test_compiler_of_a_killed_process(tmp_path: Path) -> None:
    """A nvcc that hangs, and what it began, end with the process that called it."""
    said = tmp_path / "said"
    with subprocess.Popen([sys.executable, "-c", COMPILE, str(said)], cwd=ROOT) as caller:
        end = time.monotonic() + 20
        while not (said.exists() and said.read_text().endswith("\n")) and time.monotonic() < end:
            time.sleep(0.01)
        caller.kill()
    _gone(list(map(int, said.read_text().split())))


def _gone(processes: list[int]) -> None:
    """Wait for processes to end; kill those that do not, which is a fault."""
    end = time.monotonic() + PATIENCE
    while any(map(_is_alive, processes)) and time.monotonic() < end:
        time.sleep(0.02)
    left = [process for process in processes if _is_alive(process)]
    for process in left:
        os.kill(process, signal.SIGKILL)
    assert not left


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("_", range(RUNS))
def test_killed_run_leaves_nothing(_: int, tmp_path: Path) -> None:
    """Its processes end within seconds; its files are there until the next run."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", RUN]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        processes = [int(run.stdout.readline()) for _ in range(2)]
        assert all(map(_is_alive, processes))
        scratch.clear(tmp_path)
        assert list(folder.glob("tmp*")), "a run that goes on keeps its files"
        run.send_signal(signal.SIGKILL)
        run.wait()
    _gone(processes)
    assert folder.exists()
    scratch.clear(tmp_path)
    assert not list(tmp_path.iterdir())
