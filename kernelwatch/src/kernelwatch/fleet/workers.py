"""Starts the workers of this host, one a GPU: `kernelwatch fleet-workers tls://HOST:PORT --tls FOLDER`.

Dask's resources say what a worker may measure: the machine's name, and the UUID of its GPU. Each worker has one thread
and one unit of each, so it measures one shard at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import pynvml

from kernelwatch.fleet import INSTALL, task, tls
from kernelwatch.instrument import machine

#: Seconds to wait for a scheduler that is gone.
PATIENCE = 300.0

#: Servers of no pages, which Dask starts all the same, and which nobody else on this host sees.
_NO_PAGES: dict[str, Any] = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}


def devices() -> list[str]:
    """Return the UUIDs of the GPUs that this process may use. Does not initialise CUDA."""
    with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "0"}):
        if machine.nvml() is None:
            return []
    handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
    by_place = {str(place): pynvml.nvmlDeviceGetUUID(handle) for place, handle in enumerate(handles)}
    by_name = by_place | {uuid: uuid for uuid in by_place.values()}
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(by_place)).split(",")
    return [by_name[word] for word in chosen if word in by_name]


def _options(work: Path, uuids: Sequence[str], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the options of each of this host's workers: one a GPU, or one a name where there is no GPU."""
    for name, uuid in [(uuid, uuid) for uuid in uuids] or [(name, "") for name in names]:
        with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": uuid}):
            kind = machine.default_name(machine.gpu())
        # Before the worker's process starts: whatever it imports finds no other GPU.
        told = {"CUDA_VISIBLE_DEVICES": uuid, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", task.WORK: str(work.resolve())}
        yield _NO_PAGES | {
            "name": name,
            "nthreads": 1,
            "resources": {kind: 1, **({uuid: 1} if uuid else {})},
            "env": told,
            "memory_limit": 0,
            "local_directory": str(work),
            "silence_logs": logging.WARNING,
        }


async def _serve(scheduler: str | None, work: Path, names: Sequence[str], **more: Any) -> None:
    """Run this host's workers. When they have lost the scheduler, start them anew; end if it does not return.

    Without an address, a scheduler is started here, and its address printed. `more` is for all of Dask's servers.
    """
    from distributed import Nanny, Scheduler  # noqa: PLC0415 -- help needs no Dask

    async with AsyncExitStack() as stack:
        if scheduler is None:
            scheduler = (await stack.enter_async_context(Scheduler(**_NO_PAGES, **more))).address
            print(scheduler, flush=True)
            os.dup2(2, 1)  # whoever reads the address need not read what workers print
        while True:
            every = _options(work, devices(), names)
            nannies = [Nanny(scheduler, **each, **more, death_timeout=PATIENCE) for each in every]
            await asyncio.gather(*nannies)
            await asyncio.gather(*(nanny.finished() for nanny in nannies))


def main(words: Sequence[str] | None = None) -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description="Start a worker a GPU here.")
    parser.add_argument("scheduler", nargs="?", help="address, such as tls://host:8786; else one is started here")
    parser.add_argument("--work", type=Path, default=Path(".asv/fleet"), help="folder for clones and environments")
    parser.add_argument("--without-gpu", type=int, default=1, metavar="N", help="workers on a host without a GPU")
    parser.add_argument("--name", default=os.uname().nodename, help="what the names of those begin with")
    parser.add_argument("--host", metavar="IP", help="listen at this address only")
    tls.add_option(parser)
    found = parser.parse_args(words)
    try:
        security = tls.security(found.scheduler or "tls://", found.tls)
    except tls.UnsafeError as error:
        parser.error(str(error))
    except ModuleNotFoundError as error:
        parser.error(f"{error}: {INSTALL}")
    found.work.mkdir(parents=True, exist_ok=True)
    names = [f"{found.name}-{number}" for number in range(found.without_gpu)]
    try:
        asyncio.run(_serve(found.scheduler, found.work, names, security=security, host=found.host))
    except (TimeoutError, OSError) as error:
        sys.exit(f"no scheduler at {found.scheduler}: {error}")
