"""The documented ways to start a scheduler and workers on other hosts, on this one; and a scheduler that is killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.fleet import tls
from kernelwatch.instrument import machine
from kernelwatch.project import ROOT

pytestmark = [
    pytest.mark.fleet,
    pytest.mark.filterwarnings("default"),  # other people's, of Dask
    pytest.mark.skipif(machine.gpu() is not None, reason="names are asserted that a machine without a GPU has"),
]

#: The command, which asks a scheduler that is gone for two seconds instead of twenty.
DRIVER = "import sys; from kernelwatch.fleet import cluster, command; cluster.ANSWER = 2.0; sys.exit(command.main())"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A folder with a certificate."""
    tls.make(tmp_path / "tls")
    return tmp_path / "tls"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends what a test has begun."""
    with ExitStack() as found:
        yield found


def _server(stack: ExitStack, *words: object, **environment: str) -> Any:
    """Run a program until the end of the test."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([*map(str, words)], cwd=ROOT, env=os.environ | environment, stdout=quiet, stderr=quiet)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return process


def _until(what: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it has not happened in time"
        time.sleep(0.05)


def _port() -> int:
    with closing(socket.socket()) as listening:
        listening.bind(("", 0))
        return int(listening.getsockname()[1])


def _answers(port: int) -> bool:
    with closing(socket.socket()) as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def _scheduler(stack: ExitStack, port: int, certificate: Path) -> Any:
    """A scheduler, as docs/fleet.md starts one."""
    words = ("--host", "127.0.0.1", "--port", port, "--no-dashboard", *tls.words(certificate))
    process = _server(stack, sys.executable, "-m", "distributed.cli.dask_scheduler", *words)
    _until(lambda: _answers(port))
    return process


def test_a_scheduler_that_is_killed(tmp_path: Path, certificate: Path, stack: ExitStack) -> None:
    """Workers of a job of Slurm's, and of a command as over SSH, wait for the next one, and do its work."""
    from distributed import Client

    address = f"tls://127.0.0.1:{(port := _port())}"
    job = {"PYTHON": sys.executable, "SCHEDULER": address, "TLS": str(certificate), "SLURM_JOB_ID": "7"}
    words = (address, "--tls", certificate, "--work", tmp_path, "--name", "host")
    for turn in range(2):
        process = _scheduler(stack, port, certificate)
        if turn == 0:
            script = ROOT / "kernelwatch" / "src" / "kernelwatch" / "fleet" / "workers.sbatch"
            _server(stack, "sh", script, **job, WORK=str(tmp_path))
            _server(stack, sys.executable, "-m", "kernelwatch", "fleet-workers", *words)
        with Client(address, security=tls.security(address, certificate)) as client:
            client.wait_for_workers(2, timeout=60)
            workers = client.scheduler_info()["workers"].values()
            assert {each["name"] for each in workers} == {"job-7-0", "host-0"}
            kind = {machine.default_name(None): 1}
            assert all((each["resources"], each["nthreads"]) == (kind, 1) for each in workers)
            assert client.gather(client.map(abs, [-1, -2], resources=kind)) == [1, 2]
        process.kill()
        process.wait()


@pytest.mark.parametrize("is_measuring", [False, True])
def test_the_driver_of_a_scheduler_that_is_killed(
    is_measuring: bool, tmp_path: Path, certificate: Path, stack: ExitStack
) -> None:
    """While it waits for workers, or for what they measure: one line says so, and it ends."""
    import psutil

    address = f"tls://127.0.0.1:{(port := _port())}"
    process = _scheduler(stack, port, certificate)
    options = ("--tls", certificate, "--results", tmp_path / "results", "--bench", "track_compiled")
    command = [sys.executable, "-c", DRIVER, "--scheduler", address, *map(str, options), "HEAD"]
    driver = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    stack.callback(driver.kill)
    if is_measuring:
        words = (address, "--tls", certificate, "--work", tmp_path / "work", "--name", "host")
        _server(stack, sys.executable, "-m", "kernelwatch", "fleet-workers", *words)
        _until((tmp_path / "work" / "host-0").exists, 180)
    else:
        these = psutil.Process(driver.pid)
        _until(lambda: any(each.raddr and each.raddr.port == port for each in these.net_connections("tcp")))
    process.kill()
    said = driver.communicate(timeout=120)[0]
    (line,) = said.splitlines()
    gone = f"the scheduler at {address} is gone. Shards that came back are stored: "
    assert line.startswith((gone, f"no scheduler answers at {address}: ")[: 1 if is_measuring else 2])
    assert driver.returncode == 1
