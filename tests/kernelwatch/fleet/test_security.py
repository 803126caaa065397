"""Who reaches a fleet, over real sockets, and what its workers can do to the driver; one fleet of this host serves."""

from __future__ import annotations

import os
import pickle
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.fleet import command, tls
from kernelwatch.fleet.task import Outcome
from kernelwatch.project import ROOT
from kernelwatch.store.reading import UnreadableError

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("default")]  # other people's, of Dask


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of a fleet of this host, with two workers."""
    from kernelwatch.fleet import cluster

    with cluster.embedded(tmp_path_factory.mktemp("work"), 2) as client:
        yield client


def _hears(port: int, context: ssl.SSLContext) -> bool:
    """Whether a server says something; it does not if it does not want to talk."""
    with closing(socket.create_connection(("127.0.0.1", port), 5)) as plain:
        try:
            with context.wrap_socket(plain) as line:
                return bool(line.recv(8))
        except (ssl.SSLError, OSError):
            return False


def test_another_user(embedded: Any, tmp_path: Path) -> None:
    """All listen at the loopback; who has no certificate, or one of their own making, hears nothing at any port."""
    import psutil

    these = [psutil.Process(), *psutil.Process().children(recursive=True)]
    found = [each for process in these for each in process.net_connections("inet") if each.status == "LISTEN"]
    assert {each.laddr.ip for each in found} <= {"127.0.0.1", "::1"}
    assert len({each.laddr for each in found}) >= 2 * 3 + 2, "with servers of pages, which have none"
    info = embedded.sync(embedded.scheduler.identity, n_workers=-1)
    addresses = [info["address"], *info["workers"], *(each["nanny"] for each in info["workers"].values())]
    ports = [int(address.rpartition(":")[2]) for address in addresses]
    assert len(ports) == 5, "scheduler, two nannies and two workers"
    tls.make(tmp_path)
    contexts = [ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for _ in range(3)]
    for context in contexts:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    contexts[1].load_cert_chain(tmp_path / tls.CERTIFICATE, tmp_path / tls.KEY)
    ours = embedded.security
    contexts[2].load_cert_chain(ours.tls_client_cert, ours.tls_client_key)
    heard = [[_hears(port, context) for port in ports] for context in contexts]
    assert heard == [[False] * 5, [False] * 5, [True] * 5]
    assert Path(ours.tls_client_key).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("is_fleet", [False, True])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tcp://127.0.0.1:1"], "tcp://127.0.0.1:1 is not encrypted"),
        (["127.0.0.1:1", "--tls", "."], "127.0.0.1:1 is not encrypted"),
        (["tls://127.0.0.1:1"], "needs a certificate"),
        (["tls://127.0.0.1:1", "--tls", "nowhere"], "nowhere/cert.pem is no file"),
    ],
)
def test_refused(is_fleet: bool, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is not encrypted; what has no certificate."""
    from kernelwatch.fleet import workers

    with pytest.raises(SystemExit) as ended:
        command.main(["HEAD", "--scheduler", *words]) if is_fleet else workers.main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(("subcommand", "words"), [("fleet", ["HEAD"]), ("fleet-workers", ["tls://127.0.0.1:1"])])
def test_without_dask(subcommand: str, words: list[str]) -> None:
    """Help needs none; what does says how to install it."""
    blocked = "import sys, runpy; sys.modules |= dict.fromkeys(['dask', 'distributed']); "
    run = [sys.executable, "-c", f"{blocked}runpy.run_module('kernelwatch', run_name='__main__')", subcommand]
    done = subprocess.run([*run, "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: kernelwatch {subcommand} ")
    done = subprocess.run([*run, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'kernelwatch[fleet]'" in done.stderr.splitlines()[-1]


OUTCOME = Outcome("GPU-1", {"machine.json": b"{}"}, 1.5)


#: What a worker may not say of an outcome.
WRONG: list[dict[str, Any]] = [{"device": 5}, {"files": {"name": "text"}}, {"files": [b"5"]}, {"seconds": -1.0}]


@pytest.mark.parametrize(
    "sent",
    [OUTCOME, None, "text", b"", b"5", OUTCOME.packed()[:-1], *(replace(OUTCOME, **each).packed() for each in WRONG)],
)
def test_no_outcome(sent: object) -> None:
    """What is out of bounds is refused; what is in bounds is read as it was."""
    assert Outcome.read(OUTCOME.packed()) == OUTCOME
    with pytest.raises(UnreadableError, match=r"^what came back is no outcome: "):
        Outcome.read(sent)


def test_what_commands_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """It is not printed."""
    command.say("one\x1b[2J\ntwo\x07")
    assert capsys.readouterr().out == "one[2J\ntwo\n"


class EvilError(Exception):
    """Whoever unpickles it writes down its process."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Path]]:
        return _note, self.args


def _note(note: Path) -> Exception:
    with note.open("a") as file:
        file.write(f"{os.getpid()}\n")
    return Exception("noted")


def _returns(note: Path) -> Any:
    return EvilError(note)


def _raises(note: Path) -> None:
    raise EvilError(note)


def _warns(note: Path) -> bytes:
    from distributed import get_worker

    get_worker().log_event("warn", dict.fromkeys(["message", "category"], pickle.dumps(EvilError(note))))
    return b"5"


def _lies(note: Path) -> Any:
    from distributed.protocol.serialize import Serialized

    return Serialized(
        {"serializer": "dask", "type-serialized": pickle.dumps(EvilError(note)), "sub-header": {}}, [b"5"]
    )


@pytest.mark.parametrize("does", [_returns, _raises, _warns, _lies])
def test_hostile_worker(does: Callable[[Path], Any], embedded: Any, tmp_path: Path) -> None:
    """Whatever it sends, nothing of it runs in the driver, which would run it if it were not confined, and goes on."""
    note = tmp_path / "note"
    note.write_text("")
    try:
        found = embedded.submit(does, note).result(30)
    except Exception:  # noqa: BLE001 -- whichever: it is no result
        found = b"5"
    assert found == b"5"
    assert embedded.submit(bytes, b"6", pure=False).result(30) == b"6", "it goes on"
    assert str(os.getpid()) not in note.read_text().split()
    pickle._loads(pickle.dumps(EvilError(note)))  # type: ignore[attr-defined]
    assert str(os.getpid()) in note.read_text().split()
