"""A Dask fleet on this host: scheduling, lost workers, encryption. Stubs replace measurements."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pynvml
import pytest

from kernelwatch.cli import fleet as command
from kernelwatch.config.project_root import ROOT
from kernelwatch.fleet import task
from kernelwatch.fleet.task import MeasuredFiles
from kernelwatch.instrument import machine, parent_death
from kernelwatch.store import folders, git
from tests import commits

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("default")]  # warnings of Dask itself

COMMITS = [f"{number}" * 40 for number in range(1, 9)]

#: The command of docs/fleet.md.
OPENSSL = (
    "openssl req -x509 -nodes -days 365 -subj /CN=fleet -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
    "-addext keyUsage=critical,digitalSignature,keyCertSign -keyout key.pem -out cert.pem"
)


def test_parse_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits and ranges are ordered from oldest to newest."""
    root = commits.begin(tmp_path)
    first, second, third = (commits.commit(root, message=message) for message in ("one", "two", "three"))
    monkeypatch.setattr(command, "ROOT", root)
    revisions = {"HEAD": [third], f"{first}..HEAD": [second, third], f"HEAD^ {first}": [first, second]}
    for words, hashes in revisions.items():
        assert sorted(command.list_revisions(words.split())) == sorted(hashes)


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
def test_device_shares(
    visible: str | None, visible_devices: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each visible GPU or MIG slice gets a worker and an equal share of the cores."""
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
    options = {
        name: specification["options"] for name, specification in workers.specify_workers(tmp_path, ["host-0"]).items()
    }
    assert list(options) == (visible_devices or ["host-0"])
    assert {worker_options["env"]["CUDA_VISIBLE_DEVICES"] for worker_options in options.values()} == set(
        visible_devices or [""]
    )
    cores = {1: ["3,4,5,6,7"], 2: ["3,4", "5,6"]}[len(options)]
    assert [worker_options["env"][task.CORES] for worker_options in options.values()] == cores


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("[ $(cat) = abc ] || exit 1", ""),
        (f"[ -z ${folders.RESULTS} ] || exit 1", ""),  # of the driver
        (f"[ ${parent_death.RUN} = $PPID ] && exit 2", ""),  # see mortal.py: the process ends with its worker
        ("echo no such commit; exit 1", "asv ended with 1: no such commit"),
        ("echo still alive; exec sleep 60", "asv took longer than 0.5 s"),
    ],
)
def test_exit_codes_of_asv(body: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure or timeout of asv is an error; exit code 2 reports failed configurations."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(task, "RUN_LIMIT", 0.5)
    monkeypatch.setenv(folders.RESULTS, "of-the-driver")
    if problem:
        with pytest.raises(RuntimeError, match=problem):
            task.run_asv("abc", tmp_path, "")
    else:
        task.run_asv("abc", tmp_path, "")


@pytest.mark.parametrize("checkout", ["the repository", "a clone", "a clone of one commit"])
def test_clone_of_worker(tmp_path: Path, checkout: str) -> None:
    """The clone has the commit and a branch main for asv, also after a worker was killed."""
    folder, clone = commits.begin(tmp_path / "origin"), tmp_path / "worker" / "clone"
    commits.commit(folder, {"file": "one", "results/old.json": ""})
    git.text(folder, "branch", "other")
    if checkout != "the repository":
        origin, folder = folder, tmp_path / "checkout"
        git.text(tmp_path, "clone", "--quiet", str(origin), str(folder))
        commits.set_identity(folder)
        assert "origin/HEAD" in git.text(folder, "branch", "--all"), "what a clone of GitHub's has"
    if checkout == "a clone of one commit":
        git.text(folder, "checkout", "--quiet", "--detach")
    bundle = task.bundle_repository(folder)
    assert task.clone_bundle(bundle, clone) == clone
    assert (clone / "file").read_text() == "one"
    assert set(git.text(clone, "rev-parse", "HEAD", "main").split()) == {git.text(folder, "rev-parse", "HEAD")}
    for name in (".asv", "results/new.json"):
        (clone / name).mkdir()
    (clone / "results" / "mine.json").touch()
    (clone / ".git" / "index.lock").touch()
    task.clone_bundle(bundle, clone)
    assert (clone / "results" / "mine.json").exists(), "of this fleet"
    commits.commit(folder, {"file": "two"})
    task.clone_bundle(task.bundle_repository(folder), clone)
    assert (clone / "file").read_text() == "two"
    assert (clone / ".asv").exists()
    assert [path.name for path in (clone / "results").iterdir() if path.is_file()] == ["old.json"]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Provide a client of two workers of this host."""
    from kernelwatch.fleet import workers

    with workers.run_local_cluster(tmp_path_factory.mktemp("work"), 2) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def _answers(port: int, context: ssl.SSLContext) -> bool:
    """Return whether a server answers a TLS handshake."""
    with closing(socket.create_connection(("127.0.0.1", port), 5)) as plain:
        try:
            with context.wrap_socket(plain) as line:
                return bool(line.recv(8))
        except (ssl.SSLError, OSError):
            return False


def test_other_users_cannot_connect(fleet: Any, tmp_path: Path) -> None:
    """All ports listen on loopback; a client without the fleet's certificate hears nothing."""
    import psutil

    these = [psutil.Process(), *psutil.Process().children(recursive=True)]
    listening = [
        connection
        for process in these
        for connection in process.net_connections("inet")
        if connection.status == "LISTEN"
    ]
    assert {connection.laddr.ip for connection in listening} <= {"127.0.0.1", "::1"}
    info = fleet.scheduler_info(n_workers=-1)
    addresses = [info["address"], *info["workers"], *(worker["nanny"] for worker in info["workers"].values())]
    ports = [int(address.rpartition(":")[2]) for address in addresses]
    assert len(ports) == 5, "scheduler, two nannies and two workers"
    subprocess.run(OPENSSL.split(), cwd=tmp_path, check=True, capture_output=True)
    without_certificate, with_certificate = (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for _ in range(2))
    for context in (without_certificate, with_certificate):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with_certificate.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    client_context = fleet.security.get_connection_args("client")["ssl_context"]
    assert [[_answers(port, context) for port in ports] for context in (without_certificate, with_certificate)] == [
        [False] * 5
    ] * 2
    client_context.check_hostname = False
    assert [_answers(port, client_context) for port in ports] == [True] * 5


def _stub(commit: str, bundle: bytes, bench: str) -> bytes:
    """Replace a measurement: the first of COMMITS kills its worker once, the last always fails."""
    from distributed import get_worker

    assert bundle == b"packed"
    folder = Path(bench or bundle.decode())
    if bench and commit == COMMITS[0] and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if bench and commit == COMMITS[-1]:
        with (folder / "tries").open("a") as tries:
            tries.write("x")
        raise OSError("the disk is full")
    time.sleep(0.2)
    name = f"{machine.default_name(None)}/{commit[:8]}-{uuid.uuid4()}.json"
    return msgspec.msgpack.encode(MeasuredFiles(str(get_worker().name), {name: b"{}"}, 0.2))


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a machine's folder of results; stubs measure."""
    monkeypatch.setattr(task, "measure_commit", _stub)
    monkeypatch.setattr(task, "bundle_repository", lambda _: b"packed")
    return tmp_path / "results" / machine.default_name(None)


@pytest.mark.parametrize("stored", [[], [2, 3]])
def test_unmeasured_commits_are_scheduled_once(
    stored: list[int], fleet: Any, tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neighbouring commits go to one worker, in their order."""
    from kernelwatch.fleet import engine

    for folder, places in ((results, stored), (results.with_name("other"), [0])):
        folder.mkdir(parents=True)
        for place in places:
            (folder / f"{COMMITS[place][:8]}-environment.json").touch()
    submissions, submit = dict[str, dict[str, Any]](), fleet.submit

    def record_submission(function: Any, *arguments: Any, **submit_options: Any) -> Any:
        submissions[arguments[0]] = submit_options
        return submit(function, *arguments, **submit_options)

    monkeypatch.setattr(fleet, "submit", record_submission)
    assert engine.backfill(fleet, tmp_path, COMMITS, report=lambda _: None)
    assert sorted(path.name[:8] for path in results.iterdir()) == [commit[:8] for commit in COMMITS]
    hows = [submissions[commit] for place, commit in enumerate(COMMITS) if place not in stored]
    half = len(hows) // 2
    addresses = [how["workers"][0] for how in hows]
    assert (len({*addresses}), addresses) == (2, [addresses[0]] * half + [addresses[-1]] * half)
    assert [how["priority"] for how in hows] == [-place for place in range(half)] * 2


def test_lost_commits_are_measured_again(fleet: Any, tmp_path: Path, results: Path) -> None:
    """Another worker takes over; after three failures the commit is left out and reported."""
    from kernelwatch.fleet import engine

    messages: list[str] = []
    assert not engine.backfill(fleet, tmp_path, COMMITS, str(tmp_path), messages.append)
    assert (tmp_path / "killed").exists()
    assert len((tmp_path / "tries").read_text()) == engine.MAX_TRIES
    kept = sorted(path.name[:8] for path in results.iterdir())
    assert kept == [commit[:8] for commit in COMMITS[:-1]], "each once"
    name = f"{results.name}: {COMMITS[-1][:8]}"
    assert [line for line in messages if "given up" in line] == [f"{name} is given up: OSError: the disk is full"]
    assert sum("left, about" in line for line in messages) == len(kept)


@pytest.mark.parametrize(("name", "is_refused"), [("gpu/old.json", False), ("../x", True), ("/x", True)])
def test_existing_results_stay_unchanged(name: str, is_refused: bool, tmp_path: Path) -> None:
    from kernelwatch.fleet import engine

    (tmp_path / "results" / "gpu").mkdir(parents=True)
    (tmp_path / "results" / "gpu" / "old.json").write_text("as it was")
    with pytest.raises(ValueError, match="is no name for a file of results") if is_refused else nullcontext():
        engine.store_files(MeasuredFiles("one", {name: b"another"}, 1.0), tmp_path / "results")
    assert [path.read_text() for path in tmp_path.rglob("*.*")] == ["as it was"]


@pytest.mark.usefixtures("results")
@pytest.mark.parametrize(
    ("present", "message"),
    [
        ([{}], "no worker connected within 0 s"),
        ([{"a": "gpu-x", "b": "gpu-y"}], "several kinds, gpu-x, gpu-y: give each kind a scheduler of its own"),
        ([{"tls://gone:1": "gpu"}, {}], ""),
    ],
)
def test_backfill_without_workers_ends(
    present: list[dict[str, str]], message: str, fleet: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the reason: no workers, or workers of several kinds."""
    from kernelwatch.fleet import engine
    from kernelwatch.fleet.workers import FleetError

    looks, messages = iter(present), list[str]()
    monkeypatch.setattr(engine, "WORKER_LIMIT", 0.1)
    monkeypatch.setattr(engine, "_machines_by_worker", lambda _: next(looks, {}))
    with pytest.raises(FleetError, match=message) if message else nullcontext():
        assert not engine.backfill(fleet, tmp_path, COMMITS, report=messages.append)
    assert messages == [] if message else ["8 commits are left, and no worker is there"]


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("is_done", [True, False])
def test_exit_code_of_backfill(is_done: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelwatch.fleet import engine, workers

    monkeypatch.setattr(workers, "run_local_cluster", lambda *_: nullcontext())
    monkeypatch.setattr(engine, "backfill", lambda *_: is_done)
    assert command.measure_commits(["HEAD"]) == (not is_done)


@pytest.mark.parametrize("words", [["fleet", "HEAD", "--scheduler"], ["fleet-workers"]])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["tcp://127.0.0.1:1"], "tcp://127.0.0.1:1 is not encrypted"),
        (["127.0.0.1:1", "--tls", "."], "127.0.0.1:1 is not encrypted"),
        (["tls://127.0.0.1:1"], "needs cert.pem and key.pem: say --tls FOLDER"),
        (["tls://127.0.0.1:1", "--tls", "nowhere"], "nowhere has none"),
    ],
)
def test_unencrypted_addresses_are_refused(words: list[str], options: list[str], message: str, tmp_path: Path) -> None:
    from kernelwatch.fleet.workers import FleetError

    name, *arguments = words
    with pytest.raises(FleetError, match=message):
        (command.measure_commits if name == "fleet" else command.run_workers)([*arguments, *options])


@pytest.mark.skipif(machine.find_gpu() is not None, reason="names are asserted that a machine without a GPU has")
def test_documented_commands(tmp_path: Path) -> None:
    """Workers wait for a scheduler and end with it."""
    from kernelwatch.fleet import workers

    with closing(socket.socket()) as listening:
        listening.bind(("", 0))
        port = int(listening.getsockname()[1])
    address, folder = f"tls://127.0.0.1:{port}", tmp_path / "tls"
    folder.mkdir()
    subprocess.run(OPENSSL.split(), cwd=folder, check=True, capture_output=True)
    assert OPENSSL.split() == [
        word for word in (ROOT / "docs" / "fleet.md").read_text("utf-8").replace("\\\n", " ").split()
        if word in OPENSSL.split()
    ][: len(OPENSSL.split())]  # fmt: skip
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
    """Run a module until the end of the test."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, "-m", module, *words], cwd=ROOT, stdout=quiet, stderr=quiet)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return process
