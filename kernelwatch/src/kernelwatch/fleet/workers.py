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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pynvml

from kernelwatch.fleet import INSTALL, task, tls
from kernelwatch.instrument import machine


def devices() -> list[str]:
    """Return the UUIDs of the GPUs that this process may use. Does not initialise CUDA."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "0"}):
        if machine.nvml() is None:
            return []
    handles = [pynvml.nvmlDeviceGetHandleByIndex(place) for place in range(pynvml.nvmlDeviceGetCount())]
    uuids = [pynvml.nvmlDeviceGetUUID(handle) for handle in handles]
    if chosen is None:
        return uuids
    by_name = {**{str(place): uuid for place, uuid in enumerate(uuids)}, **{uuid: uuid for uuid in uuids}}
    return [by_name[word] for word in chosen.split(",") if word in by_name]


def options(work: Path, uuids: Sequence[str], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the options of each of this host's workers: one a GPU, or one a name where there is no GPU."""
    for name, uuid in [(uuid, uuid) for uuid in uuids] or [(name, "") for name in names]:
        with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": uuid}):
            kind = machine.default_name(machine.gpu())
        # Before the worker's process starts: whatever it imports finds no other GPU.
        told = {"CUDA_VISIBLE_DEVICES": uuid, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", task.WORK: str(work.resolve())}
        yield {
            "name": name,
            "nthreads": 1,
            "resources": {kind: 1, **({uuid: 1} if uuid else {})},
            "env": told,
            "memory_limit": 0,
            "local_directory": str(work),
            "silence_logs": logging.WARNING,
            "dashboard": False,
            "dashboard_address": "127.0.0.1:0",  # a server of no pages, which Dask starts all the same
        }


async def serve(scheduler: str, work: Path, names: Sequence[str], **more: Any) -> None:
    """Run this host's workers. When they have lost the scheduler, start them anew; end if it does not return.

    Parameters
    ----------
    scheduler : str
        Its address.
    work, names
        As `options`.
    **more
        For each of Dask's nannies: where it and its worker listen, who may talk to them, how long they wait.

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
        nannies = [Nanny(scheduler, **each, **more) for each in options(work, devices(), names)]
        try:
            await asyncio.gather(*nannies)
            await asyncio.gather(*(nanny.finished() for nanny in nannies))
        finally:
            await asyncio.gather(*(nanny.close() for nanny in nannies))


def main(words: Sequence[str] | None = None) -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description="Start a worker a GPU here.")
    parser.add_argument("scheduler", help="address of a Dask scheduler, such as tls://host:8786")
    parser.add_argument("--work", type=Path, default=Path(".asv/fleet"), help="folder for clones and environments")
    parser.add_argument("--without-gpu", type=int, default=1, metavar="N", help="workers on a host without a GPU")
    parser.add_argument("--name", default=os.uname().nodename, help="what the names of those begin with")
    parser.add_argument("--host", metavar="IP", help="listen at this address only")
    parser.add_argument("--patience", type=float, default=300.0, metavar="S", help="seconds to wait for the scheduler")
    tls.add_options(parser)
    found = parser.parse_args(words)
    try:
        security = tls.security(found.scheduler, found.tls, insecure=found.insecure_tcp)
    except tls.UnsafeError as error:
        parser.error(str(error))
    except ModuleNotFoundError as error:
        parser.error(f"{error}: {INSTALL}")
    found.work.mkdir(parents=True, exist_ok=True)
    names = [f"{found.name}-{number}" for number in range(found.without_gpu)]
    more = {"security": security, "host": found.host, "death_timeout": found.patience}
    try:
        asyncio.run(serve(found.scheduler, found.work, names, **more))
    except asyncio.CancelledError:  # ended by a signal, as asked
        return
    except (TimeoutError, OSError) as error:
        sys.exit(f"no scheduler at {found.scheduler}: {error}")
