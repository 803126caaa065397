"""Starts the workers of this host, one a GPU: `kernelwatch fleet-workers tls://HOST:PORT --tls FOLDER`.

Dask's resources say what a worker may measure: the machine's name, and the UUID of its GPU. Each worker has one thread
and one unit of each, so it measures one shard at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pynvml

from kernelwatch.fleet import INSTALL, task, tls
from kernelwatch.instrument import machine


def devices() -> list[str]:
    """Return the UUIDs of the GPUs that this process may use. Does not initialise CUDA."""
    with mock.patch.dict(os.environ, clear=False):
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        if machine.nvml() is None:
            return []
    handles = [pynvml.nvmlDeviceGetHandleByIndex(place) for place in range(pynvml.nvmlDeviceGetCount())]
    uuids = [pynvml.nvmlDeviceGetUUID(handle) for handle in handles]
    if chosen is None:
        return uuids
    by_name = {**{str(place): uuid for place, uuid in enumerate(uuids)}, **{uuid: uuid for uuid in uuids}}
    return [by_name[word] for word in chosen.split(",") if word in by_name]


def name(device: str | None) -> str:
    """Return the machine's name that results of a GPU, or of none, go by."""
    with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": device or ""}):
        return machine.default_name(machine.gpu())


def options(work: Path, uuids: Sequence[str], without_gpu: int, host: str = "") -> dict[str, dict[str, Any]]:
    """Return the options of this host's workers by their names: one a GPU, or some where there is no GPU.

    Parameters
    ----------
    work : Path
        Where they keep their clones.
    uuids : sequence of str
        The GPUs.
    without_gpu : int
        How many, if there is no GPU.
    host : str
        What the names of those begin with; the host's name if not given.
    """
    host = host or os.uname().nodename
    found = {}
    for worker, uuid in [(uuid, uuid) for uuid in uuids] or [(f"{host}-{n}", "") for n in range(without_gpu)]:
        resources = {name(uuid): 1, **({uuid: 1} if uuid else {})}
        # Before the worker's process starts: whatever it imports finds no other GPU.
        environment = {
            "CUDA_VISIBLE_DEVICES": uuid,
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            task.WORK: str(work.resolve()),
        }
        found[worker] = {
            "name": worker,
            "nthreads": 1,
            "resources": resources,
            "env": environment,
            "memory_limit": 0,
            "local_directory": str(work),
            "silence_logs": logging.WARNING,
            "dashboard": False,
            "dashboard_address": "127.0.0.1:0",  # a server of no pages, which Dask starts all the same
        }
    return found


async def serve(scheduler: str, work: Path, without_gpu: int, name: str, patience: float, **more: Any) -> None:
    """Run this host's workers. When they have lost the scheduler, start them anew; end if it does not return.

    Parameters
    ----------
    scheduler : str
        Its address.
    work, without_gpu, name
        As `options`.
    patience : float
        Seconds to wait for the scheduler.
    **more
        For each of Dask's nannies: the address that it and its worker listen at, and who may talk to them.

    Raises
    ------
    TimeoutError
        There is no scheduler.
    """
    from distributed import Nanny  # noqa: PLC0415 -- help needs no Dask

    this = asyncio.current_task()
    assert this is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    while True:
        found = options(work, devices(), without_gpu, name).values()
        nannies = [Nanny(scheduler, death_timeout=patience, **each, **more) for each in found]
        try:
            await asyncio.gather(*nannies)
            await asyncio.gather(*(nanny.finished() for nanny in nannies))
        finally:
            await asyncio.gather(*(nanny.close() for nanny in nannies))


def main(words: Sequence[str] | None = None) -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description="Start a worker for each GPU here.")
    parser.add_argument("scheduler", help="address of a Dask scheduler, such as tls://host:8786")
    parser.add_argument("--work", type=Path, default=Path(".asv/fleet"), help="folder for clones and environments")
    parser.add_argument("--without-gpu", type=int, default=1, metavar="N", help="workers on a host without a GPU")
    parser.add_argument("--name", default="", help="what the names of those begin with; the host's name if not given")
    parser.add_argument("--host", metavar="IP", help="listen at this address only")
    parser.add_argument("--patience", type=float, default=300.0, metavar="S", help="seconds to wait for the scheduler")
    tls.add_options(parser)
    found = parser.parse_args(words)
    try:
        more = {"security": tls.security(found.scheduler, found.tls, insecure=found.insecure_tcp), "host": found.host}
    except tls.UnsafeError as error:
        parser.error(str(error))
    except ModuleNotFoundError as error:
        parser.error(f"{error}: {INSTALL}")
    found.work.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(serve(found.scheduler, found.work, found.without_gpu, found.name, found.patience, **more))
    except asyncio.CancelledError:  # ended by a signal, as asked
        return
    except (TimeoutError, OSError) as error:
        sys.exit(f"no scheduler at {found.scheduler}: {error}")


if __name__ == "__main__":
    main()
