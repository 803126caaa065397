"""Killed runs leave no process, and no file unless SIGKILL hits the run itself."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from kernelwatch.config import project_root
from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import parent_death
from kernelwatch.store import folders

#: Seconds to wait for a step, and for the end of every process.
BEGIN, PATIENCE = 60.0, 5.0

#: Step of a run -> part of the command line of its process.
STEPS = {"as its process begins": "runner.commit_worker", "as it compiles": "kernel.cu"}

#: An nvcc that passes the probe, then hangs with a child.
NVCC = """#!/bin/sh
case "$*" in
    --version) echo "Cuda compilation tools, release 13.0, V13.0.88";;
    *probe.cu) printf '\\177ELF' > probe.cubin;;
    *) sleep 60 & sleep 60;;
esac
"""

#: A process that calls nvcc. nvcc and its child write their ids to a file, ignore SIGTERM, and hang.
COMPILE = """
import sys
from kernelwatch.toolchain import nvcc
nvcc.run_nvcc(["/bin/sh", "-c", "trap '' TERM; sleep 60 & echo $$ $! > " + sys.argv[1] + "; wait; sleep 60"])
"""


def test_nvcc_ends_with_a_killed_caller(tmp_path: Path) -> None:
    output = tmp_path / "said"
    with subprocess.Popen([sys.executable, "-c", COMPILE, str(output)], cwd=ROOT) as caller:
        end = time.monotonic() + BEGIN
        while not (output.exists() and output.read_text().endswith("\n")) and time.monotonic() < end:
            time.sleep(0.01)
        caller.kill()
    numbers = set(map(int, output.read_text().split()))
    assert_processes_end(lambda: {process: line for process, line in processes().items() if process in numbers})


@pytest.mark.parametrize("is_waited_for", [True, False])
def test_process_started_after_its_run_ends(is_waited_for: bool) -> None:
    with subprocess.Popen(["true"]) as run:
        os.waitid(os.P_PID, run.pid, os.WEXITED | (0 if is_waited_for else os.WNOWAIT))  # else it stays a zombie
        environment = os.environ | {parent_death.RUN: str(run.pid)}
        words = [sys.executable, "-c", "import kernelwatch.instrument.parent_death"]
        assert subprocess.run(words, cwd=ROOT, env=environment, check=False).returncode == 1


def assert_processes_end(find_processes: Callable[[], Mapping[int, str]]) -> None:
    end = time.monotonic() + PATIENCE
    while (processes := find_processes()) and time.monotonic() < end:
        time.sleep(0.1)  # a look at all processes takes a while
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    assert not list(processes.values())


def processes(mark: str = "") -> dict[int, str]:
    """Return the command lines of the processes with a mark in the environment, by id."""
    environments = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # already ended
            line = (folder / "cmdline").read_bytes()
            if line and mark.encode() in (folder / "environ").read_bytes():
                environments[int(folder.name)] = line.replace(b"\0", b" ").decode()
    return environments


@pytest.fixture
def short_checkout(checkout: None) -> Iterator[Path]:
    """Yield a folder of links to this checkout. The folder's path is short, as asv's fork server needs for a socket."""
    with tempfile.TemporaryDirectory() as folder:
        for path in ROOT.iterdir():
            if path.name != ".asv":
                Path(folder, path.name).symlink_to(path)
        yield Path(folder)


KILLED = [
    ("asv", "SIGKILL", "as its process begins"),
    *(("kernelwatch", signal, "as it compiles") for signal in ("SIGKILL", "SIGTERM", "SIGINT")),
]


@pytest.mark.parametrize(("command", "name", "step"), KILLED)
def test_killed_run_leaves_nothing(command: str, name: str, step: str, tmp_path: Path, short_checkout: Path) -> None:
    """Processes and compiler of the run end within seconds. The temporary folder stays only after SIGKILL."""
    compiler, output, mark = tmp_path / "nvcc", tmp_path / "said", f"MARK={uuid.uuid4()}"
    compiler.write_text(NVCC)
    compiler.chmod(0o755)
    names = {"HOME": tmp_path, "TMPDIR": tmp_path, "NVCC": compiler, project_root.VARIABLE: short_checkout}
    names |= {folders.RESULTS: tmp_path / "results", "KERNELWATCH_CACHE": tmp_path / "cache"}
    environment = os.environ | {name: str(path) for name, path in names.items()} | dict([mark.split("=")])
    words = [sys.executable, "-m", command, "run", "--dry-run", "--bench", "track_compiled", "HEAD^!"]
    with (
        output.open("wb") as out,
        subprocess.Popen(words, cwd=short_checkout, env=environment, stdout=out, stderr=out) as run,
    ):
        end = time.monotonic() + BEGIN
        while not any(STEPS[step] in line for line in processes(mark).values()):
            assert run.poll() is None, output.read_text()
            assert time.monotonic() < end
            time.sleep(0.1)  # a look at all processes takes a while
        (folder,) = tmp_path.glob("kernelwatch-*")
        assert folder.stat().st_mode & 0o777 == 0o700
        run.send_signal(getattr(signal, name))
    assert_processes_end(lambda: processes(mark))
    assert folder.exists() == (name == "SIGKILL")
    assert "Traceback" not in output.read_text()
