"""The documented ways to start workers on other hosts, on servers of this machine alone."""

from __future__ import annotations

import os
import shutil
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

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("default")]  # other people's, of Dask

SLURM = ("munged", "slurmctld", "slurmd", "sbatch", "scancel")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"

SLURM_CONF = """ClusterName=stub
SlurmctldHost={host}
SlurmUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={first}
SlurmdPort={second}
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
NodeName={host} CPUs={cores} Gres=gpu:stub:2
PartitionName=all Nodes={host} Default=YES
"""

#: Two files that every host has stand for GPUs.
GRES_CONF = "Name=gpu Type=stub File=/dev/null\nName=gpu Type=stub File=/dev/zero\n"


#: Option of munged -> the end of its file's name.
_MUNGE = {
    "key-file": "key",
    "socket": "socket",
    "pid-file": "pid",
    "log-file": "log",
    "seed-file": "seed",
}


def _missing(*commands: str) -> str | None:
    if os.geteuid() != 0:
        return "only root can start servers here"
    found = [command for command in commands if shutil.which(command, path=PATH) is None]
    return f"{', '.join(found)} not found" if found else None


def _port() -> int:
    with closing(socket.socket()) as listening:
        listening.bind(("", 0))
        return int(listening.getsockname()[1])


def _answers(port: int) -> bool:
    with closing(socket.socket()) as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def _server(stack: ExitStack, *words: object) -> None:
    """Run a program until the end of the test."""
    environment = os.environ | {"PATH": PATH}
    process = subprocess.Popen(
        [*map(str, words)], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)


def _until(what: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it has not happened in time"
        time.sleep(0.1)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A folder with a certificate."""
    tls.make(tmp_path / "tls")
    return tmp_path / "tls"


@pytest.fixture
def scheduler(certificate: Path) -> Iterator[Any]:
    """Dask's, on this machine, with a client; no worker."""
    from distributed import Client, LocalCluster

    security = tls.security("tls://", certificate)
    options = {"dashboard_address": None, "protocol": "tls", "security": security}
    with LocalCluster(n_workers=0, **options) as cluster, Client(cluster) as client:
        yield client


def _devices(client: Any) -> set[str]:
    """What CUDA_VISIBLE_DEVICES says in each of the workers, which have their resources."""
    workers = client.scheduler_info()["workers"]
    assert all(each["resources"] == {machine.default_name(None): 1} for each in workers.values())
    assert all(each["nthreads"] == 1 for each in workers.values())
    return {each["name"] for each in workers.values()}


@pytest.mark.skipif(machine.gpu() is not None, reason="stubs stand for GPUs")
def test_slurm(tmp_path: Path, certificate: Path, scheduler: Any) -> None:
    """An array of jobs of one GPU each: Slurm runs as many as there are GPUs, and their workers find the scheduler."""
    why_not = _missing(*SLURM)
    if why_not:
        pytest.skip(why_not)
    facts = {"folder": tmp_path, "host": socket.gethostname(), "cores": os.cpu_count(), "first": _port()}
    (tmp_path / "slurm.conf").write_text(SLURM_CONF.format(**facts, second=_port()))
    (tmp_path / "gres.conf").write_text(GRES_CONF)
    (tmp_path / "munge.key").write_bytes(os.urandom(128))
    (tmp_path / "munge.key").chmod(0o600)
    environment = os.environ | {
        "SLURM_CONF": str(tmp_path / "slurm.conf"),
        "PYTHONPATH": str(ROOT),
        "PYTHON": sys.executable,
        "WORK": str(tmp_path / "work"),
    }
    with ExitStack() as stack:
        files = (f"--{name}={tmp_path}/munge.{end}" for name, end in _MUNGE.items())
        _server(stack, "munged", "--force", "--foreground", *files)
        _until((tmp_path / "munge.socket").exists)
        _server(stack, "slurmctld", "-D", "-f", tmp_path / "slurm.conf")
        _server(stack, "slurmd", "-D", "-f", tmp_path / "slurm.conf", "-N", socket.gethostname())
        export = f"--export=ALL,SCHEDULER={scheduler.scheduler.address},TLS={certificate}"
        words = ["sbatch", "--parsable", "--array=1-3", export, f"--output={tmp_path}/job-%a.txt"]
        job = [*words, "kernelwatch/src/kernelwatch/fleet/workers.sbatch"]

        def submitted() -> bool:
            done = subprocess.run(job, cwd=ROOT, env=environment, capture_output=True, text=True)
            if done.returncode == 0:
                stack.callback(subprocess.run, ["scancel", done.stdout.strip()], env=environment)
            return done.returncode == 0

        _until(submitted)
        scheduler.wait_for_workers(2, timeout=60)
        time.sleep(2)
        assert len(_devices(scheduler)) == 2, "the third waits for a GPU"


@pytest.mark.skipif(machine.gpu() is not None, reason="a name is asserted that a machine without a GPU has")
def test_ssh(tmp_path: Path, certificate: Path, scheduler: Any) -> None:
    """One command a host; it ends with the connection."""
    why_not = _missing("sshd", "ssh", "ssh-keygen")
    if why_not:
        pytest.skip(why_not)
    port = _port()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    (tmp_path / "user.pub").rename(tmp_path / "authorized")
    Path("/run/sshd").mkdir(exist_ok=True)
    options = (f"HostKey={tmp_path}/host", f"AuthorizedKeysFile={tmp_path}/authorized", "StrictModes=no", "UsePAM=no")
    with ExitStack() as stack:
        sshd = shutil.which("sshd", path=PATH)
        _server(
            stack, sshd, "-D", "-p", port, "-o", "ListenAddress=127.0.0.1", *(w for o in options for w in ("-o", o))
        )
        _until(lambda: _answers(port))
        known = ("-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={tmp_path}/known")
        python = f"PYTHONPATH={ROOT} {sys.executable}"
        words = f"{scheduler.scheduler.address} --tls {certificate} --work {tmp_path}/work"
        command = f"cd {ROOT} && {python} -m kernelwatch.fleet.workers {words}"
        for number in range(2):
            login = ("ssh", "-tt", "-p", port, "-i", tmp_path / "user", *known, "127.0.0.1")
            _server(stack, *login, f"{command} --name host-{number}")
        scheduler.wait_for_workers(2, timeout=60)
        assert _devices(scheduler) == {"host-0-0", "host-1-0"}
    _until(lambda: not scheduler.scheduler_info()["workers"])


def _scheduler(port: int, certificate: Path) -> Any:
    """A scheduler, as docs/fleet.md starts one."""
    words = ("--host", "127.0.0.1", "--port", str(port), "--no-dashboard", *tls.words(certificate))
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _until(lambda: _answers(port))
    return process


@pytest.mark.skipif(machine.gpu() is not None, reason="names are asserted that a machine without a GPU has")
def test_a_scheduler_that_is_killed(tmp_path: Path, certificate: Path) -> None:
    """Workers wait for the next one, and do its work."""
    from distributed import Client

    address = f"tls://127.0.0.1:{(port := _port())}"
    words = ("-m", "kernelwatch.fleet.workers", address, "--tls", certificate, "--work", tmp_path, "--without-gpu", 2)
    with ExitStack() as stack:
        for turn in range(2):
            process = _scheduler(port, certificate)
            stack.callback(process.wait)
            stack.callback(process.kill)
            if turn == 0:
                _server(stack, sys.executable, *words, "--name", "host")
            with Client(address, security=tls.security(address, certificate)) as client:
                client.wait_for_workers(2, timeout=60)
                assert _devices(client) == {"host-0", "host-1"}
                assert client.gather(client.map(abs, [-1, -2], resources={machine.default_name(None): 1})) == [1, 2]
            process.kill()
            process.wait()


@pytest.mark.skipif(machine.gpu() is not None, reason="the worker measures without a GPU")
@pytest.mark.parametrize("is_measuring", [False, True])
def test_the_driver_of_a_scheduler_that_is_killed(is_measuring: bool, tmp_path: Path, certificate: Path) -> None:
    """While it waits for workers, or for what they measure: one line says so, and it ends."""
    address = f"tls://127.0.0.1:{(port := _port())}"
    options = ("--tls", certificate, "--results", tmp_path / "results", "--bench", "track_compiled")
    with ExitStack() as stack:
        process = _scheduler(port, certificate)
        stack.callback(process.wait)
        stack.callback(process.kill)
        command = [sys.executable, "-m", "kernelwatch.fleet", "--scheduler", address, *map(str, options), "HEAD"]
        driver = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        stack.callback(driver.kill)
        if is_measuring:
            words = (address, "--tls", certificate, "--work", tmp_path / "work", "--name", "host")
            _server(stack, sys.executable, "-m", "kernelwatch.fleet.workers", *words)
            _until((tmp_path / "work" / "host-0" / "clone").exists, 180)
        else:
            _until(lambda: _has_connection(driver.pid, port))
        process.kill()
        said = driver.communicate(timeout=120)[0]
    (line,) = said.splitlines()
    assert line.startswith(f"the scheduler at {address} is gone. Shards that came back are stored: ")
    assert driver.returncode == 1


def _has_connection(process: int, port: int) -> bool:
    import psutil

    return any(each.raddr and each.raddr.port == port for each in psutil.Process(process).net_connections("tcp"))
