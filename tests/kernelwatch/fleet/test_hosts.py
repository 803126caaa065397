"""The documented ways to start a scheduler and workers on other hosts, on this one; and a scheduler that is killed."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.fleet import task, tls
from kernelwatch.fleet.plan import Shard
from kernelwatch.instrument import machine
from kernelwatch.project import ROOT

pytestmark = [
    pytest.mark.fleet,
    pytest.mark.filterwarnings("default"),  # other people's, of Dask
    pytest.mark.skipif(machine.gpu() is not None, reason="names are asserted that a machine without a GPU has"),
]


def _started(stack: ExitStack, module: str, *words: object) -> Any:
    """Run a module until the end of the test."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, "-m", module, *map(str, words)], cwd=ROOT, stdout=quiet, stderr=quiet)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return process


def test_a_scheduler_that_is_killed(tmp_path: Path) -> None:
    """Workers, as of a job of Slurm's and of a command over SSH, wait for the next one, and do its work."""
    from distributed import Client

    with closing(socket.socket()) as listening:
        listening.bind(("", 0))
        port = int(listening.getsockname()[1])
    address, folder = f"tls://127.0.0.1:{port}", tmp_path / "tls"
    tls.make(folder)
    certificate, key = folder / tls.CERTIFICATE, folder / tls.KEY
    words = ["--host=127.0.0.1", f"--port={port}", "--no-dashboard", "--dashboard-address=127.0.0.1:0"]
    words += ["--protocol=tls", f"--tls-ca-file={certificate}", f"--tls-cert={certificate}", f"--tls-key={key}"]
    with ExitStack() as stack:
        for turn in range(2):
            scheduler = _started(stack, "distributed.cli.dask_scheduler", *words)
            for name in ("job-7", "host") if turn == 0 else ():
                own = ("--tls", folder, "--work", tmp_path / "work", "--name", name)
                _started(stack, "kernelwatch", "fleet-workers", address, *own)
            with Client(address, security=tls.security(address, folder), timeout=60) as client:
                client.wait_for_workers(2, timeout=60)
                workers = client.scheduler_info()["workers"].values()
                assert {each["name"] for each in workers} == {"job-7-0", "host-0"}
                kind = {machine.default_name(None): 1}
                assert all((each["resources"], each["nthreads"]) == (kind, 1) for each in workers)
                assert client.gather(client.map(abs, [-1, -2], resources=kind)) == [1, 2]
            scheduler.kill()
            scheduler.wait()


def _endless(*_: object) -> bytes:
    time.sleep(60)
    return b""


def _lose(client: Any) -> None:
    """Measure while the scheduler is killed."""
    import psutil

    from kernelwatch.fleet import engine

    (scheduler,) = (each for each in psutil.Process().children() if "fleet-workers" in each.cmdline())
    threading.Timer(1.0, scheduler.kill).start()
    engine.Fleet(client, Path(), Path()).measure(machine.default_name(None), [Shard(("a" * 40,), {})])


def test_the_driver_of_a_scheduler_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While workers measure: it says so, and ends."""
    from kernelwatch.fleet import cluster

    monkeypatch.setattr(cluster, "ANSWER", 2.0)
    monkeypatch.setattr(task, "measure", _endless)
    monkeypatch.setattr(task, "bundled", lambda _: b"")
    gone = r"^the scheduler at tls://127\.0\.0\.1:\d+ is gone\. Shards that came back are stored: "
    with pytest.raises(cluster.LostError, match=gone), cluster.embedded(tmp_path, 1) as client:
        _lose(client)
