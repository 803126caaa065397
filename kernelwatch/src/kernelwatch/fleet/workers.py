"""The workers of a host, one per GPU, and the connections to them: local, or to other hosts over TLS.

A client of Dask's scheduler or of a worker can run programs on its host. On one host, all processes listen only on the
loopback address, for clients with a certificate of this run. Over several hosts, all use one self-signed certificate
and its key.
"""

import asyncio
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pynvml
from distributed import Client, Nanny, Scheduler, Security, SpecCluster

from kernelwatch.errors import KernelwatchError
from kernelwatch.fleet import task
from kernelwatch.instrument import machine
from ptxcount.util.environment import set_variables

#: Files of the certificate that all hosts share.
CERTIFICATE, KEY = "cert.pem", "key.pem"

#: Seconds to wait for a scheduler.
SCHEDULER_LIMIT = 300.0

#: Options of servers. Dask always starts web servers; here they listen only on the loopback address.
_SERVER_OPTIONS: dict[str, Any] = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
_WORKER_OPTIONS: dict[str, Any] = {
    **_SERVER_OPTIONS,
    "nthreads": 1,
    "memory_limit": 0,
    "silence_logs": logging.CRITICAL,
}


class FleetError(KernelwatchError):
    """A scheduler or worker does not answer, a connection is not encrypted, or the workers differ in their GPUs."""


def list_devices() -> list[str]:
    """Return the UUIDs of the GPUs or MIG slices that CUDA_VISIBLE_DEVICES allows, without initialising CUDA."""
    with set_variables({"CUDA_VISIBLE_DEVICES": "0"}):
        if machine.nvml_handle() is None:
            return []
    handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
    by_index = {str(index): pynvml.nvmlDeviceGetUUID(handle) for index, handle in enumerate(handles)}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(by_index)).split(",")
    return [by_index.get(word, word) for word in visible if word in by_index or word.startswith(("GPU-", "MIG-"))]


def specify_workers(work: Path, names: list[str], **options_of_all: Any) -> dict[str, dict[str, Any]]:
    """Return Dask's specification of this host's workers by name: one per GPU; without GPUs, one for each of `names`.

    Each worker has one thread, the same number of cores, and a Dask resource: the name of its machine in results. If
    there are fewer cores than workers, workers share them. `options_of_all` are Dask's options of every worker. Raises
    FleetError without GPUs and names.
    """
    uuids, by_name = list_devices(), {}
    cores, workers = sorted(os.sched_getaffinity(0)), uuids or names
    if not workers:
        raise FleetError("this host has no GPU; to start workers without one, give --without-gpu 1 or more")
    share = max(len(cores) // len(workers), 1)
    for index, name in enumerate(workers):
        variables = {"CUDA_VISIBLE_DEVICES": name if uuids else "", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        with set_variables(variables):
            kind = machine.default_name(machine.find_gpu())
        first = index * share % len(cores)
        own_cores = cores[first : first + share]
        variables |= {task.WORK_FOLDER: str(work.resolve()), task.CORES: ",".join(map(str, own_cores))}
        options = {"name": name, "local_directory": str(work), "env": variables, "resources": {kind: 1}}
        by_name[name] = {"cls": Nanny, "options": {**_WORKER_OPTIONS, **options, **options_of_all}}
    return by_name


@contextmanager
def run_local_cluster(work: Path, workers_without_gpu: int) -> Iterator[Client]:
    """Start a scheduler and workers on this host, and yield a client. All end with the `with` block.

    There is one worker per GPU; on a host without a GPU, there are `workers_without_gpu`.
    """
    local_options: dict[str, Any] = {"security": Security.temporary(), "host": "127.0.0.1"}
    work.mkdir(parents=True, exist_ok=True)
    names = [f"{os.uname().nodename}-{number}" for number in range(workers_without_gpu)]
    workers = specify_workers(work, names, **local_options)
    scheduler = {"cls": Scheduler, "options": {**_SERVER_OPTIONS, "protocol": "tls", **local_options}}
    with (
        SpecCluster(workers, scheduler, security=local_options["security"], silence_logs=logging.CRITICAL) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def connect(address: str, tls_folder: Path | None) -> Iterator[Client]:
    """Yield a client of another host's scheduler.

    Raises FleetError if the scheduler does not answer within SCHEDULER_LIMIT, or for the reasons of `make_security`.
    """
    security = make_security(address, tls_folder)
    with _report_no_answer(address):
        client = Client(address, security=security, timeout=SCHEDULER_LIMIT)
    with client:
        yield client


@contextmanager
def _report_no_answer(address: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:  # also of a time limit
        raise FleetError(f"no scheduler answers at {address}: {error}; start one there (docs/fleet.md)") from None


async def run_workers(address: str, tls_folder: Path | None, work: Path, names: list[str]) -> None:
    """Run this host's workers, in the folder `work`, until the scheduler at `address` ends.

    `names` are those of the workers on a host without a GPU.
    Raises FleetError under the same conditions as `connect` and `specify_workers`.
    """
    work.mkdir(parents=True, exist_ok=True)
    options = {"security": make_security(address, tls_folder), "death_timeout": SCHEDULER_LIMIT}
    nannies = [Nanny(address, **worker["options"]) for worker in specify_workers(work, names, **options).values()]
    with _report_no_answer(address):
        await asyncio.gather(*nannies)
    await asyncio.gather(*(nanny.finished() for nanny in nannies))


def make_security(address: str, tls_folder: Path | None) -> Security:
    """Return Dask's settings for a connection to `address` with the certificate in `tls_folder`.

    Raises FleetError if the address is not tls://HOST:PORT, there is no folder, or it has no usable certificate and
    key.
    """
    if not address.startswith("tls://"):
        raise FleetError(
            f"{address} is not encrypted, so anyone who can connect to it can run programs on all hosts of the fleet; "
            "start the scheduler at tls://HOST:PORT (docs/fleet.md)"
        )
    if not re.fullmatch(r"tls://.+:\d{1,5}", address):
        raise FleetError(f"{address} has no port; give tls://HOST:PORT")
    if tls_folder is None:
        raise FleetError(f"{address} needs a certificate; give the folder of {CERTIFICATE} and {KEY} as --tls FOLDER")
    if missing := [name for name in (CERTIFICATE, KEY) if not (tls_folder / name).is_file()]:
        raise FleetError(f"{tls_folder} has no {' and no '.join(missing)}; to make both, see docs/fleet.md")
    paths = {"cert": str(tls_folder / CERTIFICATE), "key": str(tls_folder / KEY)}
    roles = ("client", "scheduler", "worker")
    files = {f"tls_{role}_{file_kind}": path for role in roles for file_kind, path in paths.items()}
    security = Security(require_encryption=True, tls_ca_file=paths["cert"], **files)
    try:
        security.get_connection_args("client")
    except OSError as error:
        raise FleetError(f"{tls_folder} has no valid certificate: {error}; to make one, see docs/fleet.md") from None
    return security
