"""Who reaches a fleet, over real sockets; and which addresses its commands refuse."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.fleet import tls
from kernelwatch.project import ROOT

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("default")]  # other people's, of Dask

#: An address for documentation (RFC 5737), which the test's network namespace has.
OTHER = "192.0.2.1"


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of a fleet of this host, with two workers."""
    from kernelwatch.fleet import cluster

    with cluster.embedded(tmp_path_factory.mktemp("work"), 2) as client:
        yield client


def test_listens_at_loopback(embedded: Any) -> None:
    """The scheduler, nannies and workers, with their servers of pages, which have none."""
    from tests.fleet_ports import listening

    found = listening()
    assert {address for address, _ in found} <= {"127.0.0.1", "::1"}
    assert len(found) >= 2 * 3 + 2, "scheduler, two nannies and two workers"


def test_other_address(tmp_path: Path) -> None:
    """Another address of the host answers at none of the ports that the loopback one answers at."""
    if os.geteuid() != 0 or not (shutil.which("unshare") and shutil.which("ip")):
        pytest.skip("a network namespace needs root, unshare and ip")
    script = f"ip link set lo up && ip address add {OTHER}/32 dev lo && exec {sys.executable} -m tests.fleet_ports"
    words = ["unshare", "--net", "sh", "-c", f'{script} "$@"', "sh", str(tmp_path), "127.0.0.1", OTHER]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ports, local, other = json.loads(done.stdout)
    assert len(ports) >= 8
    assert local == ports
    assert other == []


def _hears(port: int, context: ssl.SSLContext) -> bytes:
    """What a server says first; nothing if it does not want to talk."""
    with closing(socket.create_connection(("127.0.0.1", port), 5)) as plain:
        try:
            with context.wrap_socket(plain) as line:
                return line.recv(8)
        except (ssl.SSLError, OSError):
            return b""


def test_another_user(embedded: Any, tmp_path: Path) -> None:
    """Who has no certificate, or one of their own making, hears nothing at any port of Dask's."""
    info = embedded.sync(embedded.scheduler.identity, n_workers=-1)
    addresses = [info["address"], *info["workers"], *(each["nanny"] for each in info["workers"].values())]
    ports = [int(address.rpartition(":")[2]) for address in addresses]
    assert len(ports) == 5
    tls.make(tmp_path)
    contexts = [ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for _ in range(3)]
    for context in contexts:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    contexts[1].load_cert_chain(tmp_path / tls.CERTIFICATE, tmp_path / tls.KEY)
    ours = embedded.security
    contexts[2].load_cert_chain(ours.tls_client_cert, ours.tls_client_key)
    heard = [[bool(_hears(port, context)) for port in ports] for context in contexts]
    assert heard == [[False] * 5, [False] * 5, [True] * 5]
    assert Path(ours.tls_client_key).stat().st_mode & 0o777 == 0o600


#: What DASK_DISTRIBUTED__COMM__TLS__CA_FILE and its like would set.
CONFIGURED = {
    f"distributed.comm.tls.{name}": f"{name.partition('.')[0][:2]}.pem"
    for name in ("ca-file", "client.cert", "scheduler.cert", "worker.cert")
}


@pytest.mark.parametrize("module", ["fleet", "workers"])
@pytest.mark.parametrize(
    ("words", "configured", "said"),
    [
        (["tcp://127.0.0.1:1"], False, "tcp://127.0.0.1:1 is not encrypted: whoever reaches its port can run programs"),
        (["127.0.0.1:1"], False, "127.0.0.1:1 is not encrypted"),
        (["tcp://127.0.0.1:1", "--tls", "."], False, "is not encrypted"),
        (["tcp://127.0.0.1:1"], True, "is not encrypted"),
        (["tls://127.0.0.1:1"], False, "needs a certificate: kernelwatch fleet-certificate FOLDER makes"),
        (["tls://127.0.0.1:1", "--insecure-tcp"], False, "tls://127.0.0.1:1 needs a certificate"),
        (["tls://127.0.0.1:1", "--tls", "nowhere"], False, "nowhere/cert.pem is no file"),
    ],
)
def test_refused(
    module: str, words: list[str], configured: bool, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not encrypted, unless that is asked for by name; what has no certificate."""
    import dask

    from kernelwatch.fleet import __main__ as fleet
    from kernelwatch.fleet import workers

    with dask.config.set(CONFIGURED if configured else {}), pytest.raises(SystemExit) as ended:
        workers.main(words) if module == "workers" else fleet.main(["HEAD", "--scheduler", *words])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_allowed() -> None:
    """An address without encryption that is asked for by name; a certificate of Dask's own configuration."""
    import dask

    assert not tls.security("tcp://127.0.0.1:1", None, insecure=True).require_encryption
    with dask.config.set(CONFIGURED):
        assert tls.security("tls://127.0.0.1:1", None).get_tls_config_for_role("client")["ca_file"] == "ca.pem"


@pytest.mark.parametrize("command", ["fleet", "fleet-workers", "fleet-certificate"])
def test_without_dask(command: str) -> None:
    """Help needs none; what does says how to install it."""
    blocked = "import sys, runpy; sys.modules |= dict.fromkeys(['dask', 'distributed']); "
    run = [sys.executable, "-c", f"{blocked}runpy.run_module('kernelwatch', run_name='__main__')", command]
    done = subprocess.run([*run, "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: kernelwatch {command} ")
    if command != "fleet-certificate":
        words = ["tcp://127.0.0.1:1", "--insecure-tcp"] if command == "fleet-workers" else ["HEAD"]
        done = subprocess.run([*run, *words], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 2
        assert "make fleet installs Dask; else: pip install -r requirements/fleet.txt" in done.stderr.splitlines()[-1]
