"""A Dask fleet on this host: scheduling, lost workers and encryption. A stub replaces measurements."""

import os
import signal
import socket
import ssl
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kernelwatch.cli import fleet as command
from kernelwatch.errors import KernelwatchError
from kernelwatch.fleet import task
from kernelwatch.fleet.task import MeasuredFiles
from kernelwatch.instrument import machine
from tests import commits

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("default")]  # warnings of Dask itself

COMMITS = [f"{number}" * 40 for number in range(1, 9)]

#: The command that makes a certificate, as in docs/fleet.md.
OPENSSL = (
    "openssl req -x509 -nodes -days 365 -subj /CN=fleet -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
    "-addext keyUsage=critical,digitalSignature,keyCertSign -keyout key.pem -out cert.pem"
)


def test_revisions_become_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = commits.begin(tmp_path)
    first, second, third, last = (commits.commit(root, message=str(number)) for number in range(4))
    monkeypatch.setattr(command, "ROOT", root)
    revisions = {
        "HEAD": [last],
        "HEAD..HEAD": [],
        f"{second}..HEAD": [third, last],
        f"^{second} HEAD": [third, last],
        f"HEAD^ {first}": [first, third],
        f"HEAD {first}..{second}": [second, last],
        f"{second}..HEAD {first}": [first, third, last],
        f"{first}..{third} {second}": [second, third],
    }
    for words, hashes in revisions.items():
        assert command.list_revisions(words.split()) == hashes
    with pytest.raises(KernelwatchError, match=r"bad revision 'nope'; give revisions, or ranges such as v1\.0\.\.main"):
        command.list_revisions(["HEAD", "nope"])
    monkeypatch.setattr(command, "ROOT", tmp_path / "no repository")
    (tmp_path / "no repository").mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    with pytest.raises(KernelwatchError, match=r"not a git repository \(.*\): \.git$"):
        command.list_revisions(["HEAD"])


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from kernelwatch.fleet import workers

    with workers.run_local_cluster(tmp_path_factory.mktemp("work"), 2) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def _answers(port: int, context: ssl.SSLContext) -> bool:
    with closing(socket.create_connection(("127.0.0.1", port), 5)) as plain:
        try:
            with context.wrap_socket(plain) as line:
                return bool(line.recv(8))
        except (ssl.SSLError, OSError):
            return False


def test_other_users_cannot_connect(fleet: Any, tmp_path: Path) -> None:
    """All ports listen on the loopback address, and answer only clients with the fleet's certificate."""
    import psutil

    these = [psutil.Process(), *psutil.Process().children(recursive=True)]
    connections = (connection for process in these for connection in process.net_connections("inet"))
    listening = {connection.laddr.ip for connection in connections if connection.status == "LISTEN"}
    assert listening <= {"127.0.0.1", "::1"}
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
    for context in (without_certificate, with_certificate):
        assert [_answers(port, context) for port in ports] == [False] * 5
    client_context.check_hostname = False
    assert [_answers(port, client_context) for port in ports] == [True] * 5


def _stub(commit: str, bundle: bytes, bench: str) -> bytes:
    """Return a result file without measuring. The first of COMMITS kills its worker once, the last always fails."""
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
    monkeypatch.setattr(task, "measure_commit", _stub)
    monkeypatch.setattr(task, "bundle_repository", lambda _: b"packed")
    (tmp_path / "asv.conf.json").write_text('{"repo": ".", "results_dir": "of/gpus"}')
    return tmp_path / "of/gpus" / machine.default_name(None)


@pytest.mark.parametrize("stored", [[], [2, 3]])
def test_neighbouring_commits_share_a_worker(
    stored: list[int], fleet: Any, tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of two workers gets half of the unmeasured commits, all neighbours, in order."""
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
    """The commit of a killed worker is measured again. A commit that fails MAX_TRIES times is reported."""
    from kernelwatch.fleet import engine

    messages: list[str] = []
    assert not engine.backfill(fleet, tmp_path, COMMITS, str(tmp_path), messages.append)
    assert (tmp_path / "killed").exists()
    assert len((tmp_path / "tries").read_text()) == engine.MAX_TRIES
    kept = sorted(path.name[:8] for path in results.iterdir())
    assert kept == [commit[:8] for commit in COMMITS[:-1]], "each commit has one file of results"
    name = f"{results.name}: {COMMITS[-1][:8]}"
    assert [line for line in messages if " failed: " in line] == [f"{name} failed: OSError: the disk is full"]
    assert sum("left, about" in line for line in messages) == len(kept)


@pytest.mark.parametrize(("name", "is_refused"), [("gpu/old.json", False), ("../x", True), ("/x", True)])
def test_existing_results_stay_unchanged(name: str, is_refused: bool, tmp_path: Path) -> None:
    from kernelwatch.fleet import engine

    (tmp_path / "results" / "gpu").mkdir(parents=True)
    (tmp_path / "results" / "gpu" / "old.json").write_text("as it was")
    with pytest.raises(ValueError, match="is outside of the folder of results") if is_refused else nullcontext():
        engine.store_files(MeasuredFiles("one", {name: b"another"}, 1.0), tmp_path / "results")
    assert [path.read_text() for path in tmp_path.rglob("*.*")] == ["as it was"]


@pytest.mark.usefixtures("results")
@pytest.mark.parametrize(
    ("present", "message"),
    [
        ([{}], "no worker connected within 0 s; to start workers, see docs/fleet.md of kernelwatch"),
        ([{"a": "gpu-x", "b": "gpu-y"}], "different kinds of GPUs, gpu-x, gpu-y; use one scheduler per kind"),
        ([{"tls://127.0.0.1:1": "gpu"}, {}], ""),  # the only worker is gone at the second look
    ],
)
def test_backfill_ends_without_suitable_workers(
    present: list[dict[str, str]], message: str, fleet: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernelwatch.fleet import engine
    from kernelwatch.fleet.workers import FleetError

    looks, messages = iter(present), list[str]()
    monkeypatch.setattr(engine, "WORKER_LIMIT", 0.1)
    monkeypatch.setattr(engine, "_machines_by_worker", lambda _: next(looks, {}))
    with pytest.raises(FleetError, match=message) if message else nullcontext():
        assert not engine.backfill(fleet, tmp_path, COMMITS, report=messages.append)
    assert messages == ([] if message else ["8 commits left, but no worker is connected; start one, and retry"])


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("is_done", [True, False])
def test_only_unmeasured_commits_give_exit_code_1(is_done: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelwatch.fleet import engine, workers

    monkeypatch.setattr(workers, "run_local_cluster", lambda *_: nullcontext())
    monkeypatch.setattr(engine, "backfill", lambda *_: is_done)
    assert command.measure_commits(["HEAD"]) == (not is_done)


def test_measured_commits_are_not_bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelwatch.fleet import engine

    (tmp_path / "results" / "gpu").mkdir(parents=True)
    (tmp_path / "results" / "gpu" / f"{COMMITS[0][:8]}-x.json").touch()
    monkeypatch.setattr("kernelwatch.fleet.engine.folders.results_folder", lambda _: tmp_path / "results")
    monkeypatch.setattr(engine, "_find_machine", lambda _: ("gpu", ["tls://a:1"]))
    client: Any = None  # not used
    messages = list[str]()
    assert engine.backfill(client, tmp_path, COMMITS[:1], report=messages.append)
    assert messages == ["gpu: nothing to measure: 1 commit has results"]
