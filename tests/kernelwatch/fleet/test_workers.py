"""Workers of a fleet: devices, calls of asv, clones, addresses, and documented commands."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from kernelwatch.cli import fleet as command
from kernelwatch.config.project_root import ROOT
from kernelwatch.fleet import task
from kernelwatch.instrument import machine, parent_death
from kernelwatch.store import folders, git
from tests import commits
from tests.kernelwatch.fleet.test_fleet import OPENSSL

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("default")]  # warnings of Dask itself


@pytest.mark.parametrize(
    ("visible", "visible_devices"),
    [
        (None, ["GPU-a", "GPU-b"]),
        ("1", ["GPU-b"]),
        ("GPU-b,0", ["GPU-b", "GPU-a"]),
        ("MIG-x,MIG-y", ["MIG-x", "MIG-y"]),
        ("", []),
    ],
)
def test_each_device_gets_a_worker(
    visible: str | None, visible_devices: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each visible GPU or MIG slice gets one with an equal share of the cores. Without any, the host gets one."""
    from kernelwatch.fleet import workers

    monkeypatch.setattr(machine, "nvml_handle", object)
    monkeypatch.setattr(machine, "find_gpu", lambda: SimpleNamespace(name="GPU X") if visible_devices else None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: 2)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda place: "ab"[place])
    monkeypatch.setattr(pynvml, "nvmlDeviceGetUUID", lambda handle: f"GPU-{handle}")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 4, 5, 6, 7})
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert workers.list_devices() == visible_devices
    specifications = workers.specify_workers(tmp_path, ["host-0"])
    assert list(specifications) == (visible_devices or ["host-0"])
    environments = [specification["options"]["env"] for specification in specifications.values()]
    assert {variables["CUDA_VISIBLE_DEVICES"] for variables in environments} == set(visible_devices or [""])
    cores = {1: ["3,4,5,6,7"], 2: ["3,4", "5,6"]}[len(environments)]
    assert [variables[task.CORES] for variables in environments] == cores


def test_workers_beyond_the_cores_share_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from kernelwatch.fleet import workers

    monkeypatch.setattr(workers, "list_devices", list)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 4})
    specifications = workers.specify_workers(tmp_path, ["host-0", "host-1", "host-2"]).values()
    assert [specification["options"]["env"][task.CORES] for specification in specifications] == ["3", "4", "3"]
    with pytest.raises(workers.FleetError, match="no GPU; to start workers without one, give --without-gpu 1 or more"):
        workers.specify_workers(tmp_path, [])


def _run_as_asv(body: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the commit abc; a shell script replaces asv."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    task.run_asv("abc", folder, "")


@pytest.mark.parametrize(
    "body",
    [
        "[ $(cat) = abc ] || exit 1",
        f"[ -z ${folders.RESULTS} ] || exit 1",  # the driver's folder
        f"[ ${parent_death.RUN} = $PPID ] || exit 1",  # asv ends with its worker
    ],
)
def test_asv_gets_commit_and_environment(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(folders.RESULTS, "of-the-driver")
    _run_as_asv(body, tmp_path, monkeypatch)


def test_failed_configurations_are_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asv's exit code 2 is no error of the worker."""
    _run_as_asv("exit 2", tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("echo no such commit; exit 1", "asv run ended with exit code 1; the end of its output: no such commit"),
        ("echo still alive; exec sleep 60", "asv took longer than 0.5 s"),
    ],
)
def test_failing_asv_is_an_error(body: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "RUN_LIMIT", 0.5)
    with pytest.raises(RuntimeError, match=problem):
        _run_as_asv(body, tmp_path, monkeypatch)


@pytest.mark.parametrize("checkout", ["the repository", "a clone", "a clone of one commit"])
def test_worker_clones_the_commit(tmp_path: Path, checkout: str) -> None:
    """The clone has it as HEAD and as `main`. A second clone keeps new results of the same bundle, and asv's files."""
    folder, clone = commits.begin(tmp_path / "origin"), tmp_path / "worker" / "clone"
    configuration = '{"repo": ".", "results_dir": "of/gpus"}'
    commits.commit(folder, {"file": "one", "of/gpus/old.json": "", "asv.conf.json": configuration})
    git.text(folder, "branch", "other")
    if checkout != "the repository":
        origin, folder = folder, tmp_path / "checkout"
        git.text(tmp_path, "clone", "--quiet", str(origin), str(folder))
        commits.set_identity(folder)
        assert "origin/HEAD" in git.text(folder, "branch", "--all"), "a clone of GitHub's repository has it"
    if checkout == "a clone of one commit":
        git.text(folder, "checkout", "--quiet", "--detach")
    bundle = task.bundle_repository(folder)
    assert task.clone_bundle(bundle, clone) == clone
    assert (clone / "file").read_text() == "one"
    assert set(git.text(clone, "rev-parse", "HEAD", "main").split()) == {git.text(folder, "rev-parse", "HEAD")}
    for name in (".asv", "of/gpus/new.json"):
        (clone / name).mkdir()
    (clone / "of/gpus/mine.json").touch()
    (clone / ".git" / "index.lock").touch()
    task.clone_bundle(bundle, clone)
    assert (clone / "of/gpus/mine.json").exists(), "cloning the same bundle again keeps results"
    commits.commit(folder, {"file": "two"})
    task.clone_bundle(task.bundle_repository(folder), clone)
    assert (clone / "file").read_text() == "two"
    assert (clone / ".asv").exists()
    assert [path.name for path in (clone / "of/gpus").iterdir() if path.is_file()] == ["old.json"]


def test_unusable_certificate_is_an_error(tmp_path: Path) -> None:
    from kernelwatch.fleet.workers import FleetError, make_security

    for name, message in (
        ("cert.pem", r"has no key\.pem; to make both, see"),
        ("key.pem", "has no valid certificate: "),
    ):
        (tmp_path / name).touch()
        with pytest.raises(FleetError, match=message):
            make_security("tls://127.0.0.1:1", tmp_path)


@pytest.mark.parametrize("words", [["fleet", "HEAD", "--scheduler"], ["fleet-workers"]])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["tcp://127.0.0.1:1"], "tcp://127.0.0.1:1 is not encrypted"),
        (["127.0.0.1:1", "--tls", "."], "127.0.0.1:1 is not encrypted"),
        (["tls://127.0.0.1:1"], "give the folder of cert.pem and key.pem as --tls FOLDER"),
        (["tls://127.0.0.1:1", "--tls", "nowhere"], "nowhere has no cert.pem and no key.pem"),
        (["tls://127.0.0.1"], "tls://127.0.0.1 has no port; give tls://HOST:PORT"),
        (["tls://127.0.0.1:one"], "has no port"),
    ],
)
def test_insecure_connections_are_refused(words: list[str], options: list[str], message: str) -> None:
    from kernelwatch.fleet.workers import FleetError

    name, *arguments = words
    with pytest.raises(FleetError, match=message):
        (command.measure_commits if name == "fleet" else command.run_workers)([*arguments, *options])


@pytest.mark.skipif(machine.find_gpu() is not None, reason="names are asserted that a machine without a GPU has")
def test_documented_commands_start_a_fleet(tmp_path: Path) -> None:
    from kernelwatch.fleet import workers

    with closing(socket.socket()) as listening:
        listening.bind(("", 0))
        port = int(listening.getsockname()[1])
    address, folder = f"tls://127.0.0.1:{port}", tmp_path / "tls"
    folder.mkdir()
    subprocess.run(OPENSSL.split(), cwd=folder, check=True, capture_output=True)
    page = (ROOT / "docs" / "fleet.md").read_text("utf-8").replace("\\\n", " ")
    assert OPENSSL in " ".join(page.split())
    certificate, key = folder / "cert.pem", folder / "key.pem"
    scheduler = ["distributed.cli.dask_scheduler", "--host=127.0.0.1", f"--port={port}", "--no-dashboard"]
    scheduler += ["--dashboard-address=127.0.0.1:0", "--protocol=tls", f"--tls-ca-file={certificate}"]
    scheduler += [f"--tls-cert={certificate}", f"--tls-key={key}"]
    with ExitStack() as stack:
        ended = []
        for name in ("job-7", "host"):
            options = ["--tls", str(folder), "--work", str(tmp_path / "work"), "--name", name]
            ended.append(_start_process(stack, "kernelwatch", "fleet-workers", address, *options))
        process = _start_process(stack, *scheduler)
        with workers.connect(address, folder) as client:
            client.wait_for_workers(2, timeout=60)
            connected_workers = client.scheduler_info()["workers"].values()
            assert {worker["name"] for worker in connected_workers} == {"job-7-0", "host-0"}
            kind = {machine.default_name(None): 1}
            assert all((worker["resources"], worker["nthreads"]) == (kind, 1) for worker in connected_workers)
            assert client.gather(client.map(abs, [-1, -2], resources=kind)) == [1, 2]
        process.kill()
        for ended_process in ended:
            ended_process.wait(60)


def _start_process(stack: ExitStack, module: str, *words: str) -> Any:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, "-m", module, *words], cwd=ROOT, stdout=quiet, stderr=quiet)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return process
