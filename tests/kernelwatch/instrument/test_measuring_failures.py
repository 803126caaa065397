"""Failures of the measuring process: hangs, lost GPUs, failed starts."""

import atexit
import os
import select
import shutil
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import client, device, machine, server
from kernelwatch.instrument.client import MeasuringError
from kernelwatch.instrument.job_messages import DeviceFacts
from kernelwatch.instrument.reference_memory import Reference
from tests.served import LENGTH, Session, job, request_outcome, serve_session


def test_hanging_job_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(os, "_exit", lambda _: ended.set())
    with (
        serve_session(Session(lambda _: ended.wait(5)), tmp_path, job_seconds=0.05) as address,
        pytest.raises(MeasuringError, match=r"took longer than 0\.05 s"),
    ):
        request_outcome(address, job())
    assert ended.is_set()


def test_slow_reference_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit of a job includes its reference, for which the measuring process waits."""
    monkeypatch.setattr(os, "_exit", lambda _: None)
    slow = Reference(LENGTH, lambda _: time.sleep(0.3))
    with (
        serve_session(Session(), tmp_path, job_seconds=0.05) as address,
        pytest.raises(MeasuringError, match=r"reference.*; use smaller arguments, or a faster reference$"),
    ):
        request_outcome(address, job(), slow)


def test_failed_call_of_the_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def cuGraphInstantiate(*_: object) -> tuple[SimpleNamespace]:  # noqa: N802 -- as in cuda-bindings
        return (SimpleNamespace(name="CUDA_ERROR_OUT_OF_MEMORY"),)

    monkeypatch.setattr(device, "driver", SimpleNamespace(CUresult=SimpleNamespace(CUDA_SUCCESS=0)))
    with pytest.raises(RuntimeError, match=r"^cuGraphInstantiate .* returned CUDA_ERROR_OUT_OF_MEMORY$"):
        device.call_driver(cuGraphInstantiate, "graph", 0)


def test_silent_process_is_named() -> None:
    ours, theirs = Pipe()
    with ours, theirs, pytest.raises(MeasuringError, match=r"^the measuring process did not answer within 0 s$"):
        client.Channel(ours).receive(DeviceFacts, 0.0)


def test_time_limit_waits_for_its_handler() -> None:
    begun, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def finish_late() -> None:
        begun.set()
        goes_on.wait(5)
        ended.set()

    with server._limit_time(0.001, finish_late):
        assert begun.wait(5)
        threading.Timer(0.1, goes_on.set).start()
    assert ended.is_set()


#: A measuring process whose GPU is lost during the second job.
FALLS_OFF = """\
    #!{python}
    import sys
    from pathlib import Path
    from types import SimpleNamespace
    sys.path.insert(0, {root!r})
    from kernelwatch.instrument import server
    from tests import served

    fallen, jobs = Path({fallen!r}), []

    def act(job):
        jobs.append(job)
        if len(jobs) == 2:
            fallen.touch()
            raise RuntimeError("cuStreamSynchronize failed: GPU is lost")

    def session(watch):
        if fallen.exists():
            raise NotImplementedError("no usable CUDA device: GPU is lost")
        return served.Session(act)

    facts = dict(l2_bytes=lambda: 1, get_l2_fetch_bytes=lambda: 64)
    server.device = SimpleNamespace(describe_device=lambda conditions: served.FACTS, **facts)
    class Server(server.Server):
        def __init__(self, *given):
            Path({told!r}).write_text(str(given[2:]))
            super().__init__(*given)

    server.Session, server.Server = session, Server
    server.main(*sys.argv[3:])
"""


def test_lost_gpu_fails_one_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier outcomes stay, later configurations are skipped. Each process that ends is followed by a new one."""
    script, arguments_file, fallen = (tmp_path / name for name in ("python", "told", "fallen"))
    script_fields = {"python": sys.executable, "root": str(ROOT), "fallen": str(fallen), "told": str(arguments_file)}
    script.write_text(textwrap.dedent(FALLS_OFF).format(**script_fields))
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(machine, "nvml_handle", lambda: "handle")
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    with server.start_server(job_seconds=7.5) as facts:
        address = os.environ[client.ADDRESS]
        assert request_outcome(address, job()).samples == (1.0, 2.0)
        assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
        assert arguments_file.read_text() == str((7.5, Path(address).parent)), "the arguments of Server"
        with pytest.raises(MeasuringError, match=r"^RuntimeError: cuStreamSynchronize failed: GPU is lost$"):
            request_outcome(address, job())
        for _ in range(2):
            with pytest.raises(NotImplementedError, match=r"^no usable CUDA device: GPU is lost$"):
                request_outcome(address, job())
    assert facts == {"l2_bytes": 1, "l2_fetch_bytes": 64, "others_on_gpu": 0}, "the facts of the first process"
    assert client.ADDRESS not in os.environ
    assert not Path(address).parent.exists()


def test_process_that_cannot_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(machine, "nvml_handle", lambda: "handle")
    with server.start_server() as facts:
        assert facts == {}
        with pytest.raises(MeasuringError, match="the measuring process did not start"):
            request_outcome(os.environ[client.ADDRESS], job())


def test_wait_for_the_process_is_deferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the run waits for the process and removes its folder."""
    script, ends = tmp_path / "python", list[Callable[[], None]]()
    script.write_text("#!/bin/sh\necho '{}'\ncat\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(machine, "nvml_handle", lambda: "handle")
    monkeypatch.setattr(atexit, "register", ends.append)
    with server.start_server(defers_wait=True):
        folder = Path(os.environ[client.ADDRESS]).parent
    assert folder.exists()
    ends[0]()
    assert not folder.exists()


def test_process_ends_without_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(tempfile.mkdtemp())

    def end_run(*_: object) -> tuple[list[int]]:
        """Remove the folder, then return as `select` does for the closed pipe of an ended run."""
        shutil.rmtree(folder)
        return ([0],)

    monkeypatch.setattr(select, "select", end_run)
    with Path(os.devnull).open(encoding="utf-8") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        server.main(str(folder / "measuring"), "1")
    assert not folder.exists()


def test_no_process_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "nvml_handle", lambda: None)
    with server.start_server() as facts:
        assert facts == {}
        assert client.ADDRESS not in os.environ
