"""The workers of a host, one a GPU, and the ways to reach them: of this host, or over TLS those of others.

Whoever can talk to Dask's scheduler or to a worker can run programs there. On one host, all listen at the loopback
address only, to whoever has a certificate that lives as long as the run. Over hosts, one certificate with its key
serves all, and is its own authority.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pynvml
from distributed import Client, Nanny, Scheduler, Security, SpecCluster

from kernelwatch.errors import KernelwatchError
from kernelwatch.fleet import task
from kernelwatch.instrument import machine

#: Files of the certificate that hosts share.
CERTIFICATE, KEY = "cert.pem", "key.pem"

#: Seconds to wait for a scheduler.
PATIENCE = 300.0

#: Of all servers: those of pages, which Dask starts all the same, nobody else sees; what failed, the driver says.
_SERVER: dict[str, Any] = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
_WORKER: dict[str, Any] = {**_SERVER, "nthreads": 1, "memory_limit": 0, "silence_logs": logging.CRITICAL}


class FleetError(KernelwatchError):
    """An address is not encrypted, there is no certificate for it, or nobody answers there."""


def devices() -> list[str]:
    """Return the UUIDs of the GPUs, or of their MIG slices, that this process may use. Does not initialise CUDA."""
    with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "0"}):
        if machine.nvml_handle() is None:
            return []
    handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
    by_place = {str(place): pynvml.nvmlDeviceGetUUID(handle) for place, handle in enumerate(handles)}
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(by_place)).split(",")
    return [by_place.get(word, word) for word in chosen if word in by_place or word.startswith(("GPU-", "MIG-"))]


def specified(work: Path, names: list[str], **more: Any) -> dict[str, dict[str, Any]]:
    """Return Dask's specification of this host's workers, by name: one a GPU, or one a name where there is no GPU.

    Dask's resources say which machine a worker measures for. Each has one thread, and an equal share of the cores.
    """
    uuids, found = devices(), {}
    cores, workers = sorted(os.sched_getaffinity(0)), uuids or names
    share = max(len(cores) // len(workers), 1)
    for place, name in enumerate(workers):
        told = {"CUDA_VISIBLE_DEVICES": name if uuids else "", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        with mock.patch.dict(os.environ, told):
            kind = machine.default_name(machine.find_gpu())
        mine = cores[place * share : (place + 1) * share]
        told |= {task.WORK: str(work.resolve()), task.CORES: ",".join(map(str, mine))}
        options = {"name": name, "local_directory": str(work), "env": told, "resources": {kind: 1}}
        found[name] = {"cls": Nanny, "options": {**_WORKER, **options, **more}}
    return found


@contextmanager
def embedded(work: Path, without_gpu: int) -> Iterator[Client]:
    """Give a client of a scheduler and workers of this host, which end with it."""
    own: dict[str, Any] = {"security": Security.temporary(), "host": "127.0.0.1"}
    work.mkdir(parents=True, exist_ok=True)
    workers = specified(work, [f"{os.uname().nodename}-{number}" for number in range(without_gpu)], **own)
    scheduler = {"cls": Scheduler, "options": {**_SERVER, "protocol": "tls", **own}}
    with (
        SpecCluster(workers, scheduler, security=own["security"], silence_logs=logging.CRITICAL) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def connected(address: str, folder: Path | None) -> Iterator[Client]:
    """Give a client of another host's scheduler. Raises FleetError if none answers, or it is not safe."""
    try:
        client = Client(address, security=security(address, folder), timeout=PATIENCE)
    except OSError as error:
        raise FleetError(f"no scheduler answers at {address}: {error}") from None
    with client:
        yield client


async def serve(address: str, folder: Path | None, work: Path, names: list[str]) -> None:
    """Run this host's workers until the scheduler has gone. Raises FleetError if none answers, or it is not safe."""
    work.mkdir(parents=True, exist_ok=True)
    own = {"security": security(address, folder), "death_timeout": PATIENCE}
    nannies = [Nanny(address, **each["options"]) for each in specified(work, names, **own).values()]
    try:
        await asyncio.gather(*nannies)
    except (TimeoutError, OSError) as error:
        raise FleetError(f"no scheduler answers at {address}: {error}") from None
    await asyncio.gather(*(nanny.finished() for nanny in nannies))


def security(address: str, folder: Path | None) -> Security:
    """Return Dask's settings for a connection with the certificate of a folder. Raises FleetError if it is not safe."""
    if not address.startswith("tls://"):
        raise FleetError(
            f"{address} is not encrypted: whoever reaches its port can run programs on all hosts of the fleet. Let "
            "the scheduler be at tls://HOST:PORT (docs/fleet.md)"
        )
    if folder is None or not all((folder / name).is_file() for name in (CERTIFICATE, KEY)):
        where = f"{folder} has none" if folder else "say --tls FOLDER"
        raise FleetError(f"{address} needs {CERTIFICATE} and {KEY}: {where} (docs/fleet.md has the command)")
    paths = {"cert": str(folder / CERTIFICATE), "key": str(folder / KEY)}
    roles = ("client", "scheduler", "worker")
    files = {f"tls_{role}_{what}": path for role in roles for what, path in paths.items()}
    return Security(require_encryption=True, tls_ca_file=paths["cert"], **files)
