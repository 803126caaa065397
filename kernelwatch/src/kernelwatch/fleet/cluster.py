"""The scheduler and its workers, of which the driver is a client and no more, on one host as on many.

Dask unpickles results, errors and warnings in the process that asks for them, and a pickle can run anything there. The
driver unpickles nothing but bytes.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import dask
from distributed import Client
from distributed.comm.core import CommClosedError

from kernelwatch import mortal
from kernelwatch.fleet import tls
from kernelwatch.fleet.workers import devices
from kernelwatch.project import ROOT

#: Seconds for an answer of the scheduler.
ANSWER = 20.0

#: Dask's servers say little, also where they are killed, and show no pages to everybody on this host.
_QUIET = {"DASK_LOGGING__DISTRIBUTED": "error", "PYTHONWARNINGS": "ignore:resource_tracker:UserWarning"} | {
    f"DASK_DISTRIBUTED__{server}__HTTP__ROUTES": "[]" for server in ("SCHEDULER", "WORKER")
}


class LostError(RuntimeError):
    """The scheduler is gone."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "bytes"):
            return bytes
        raise TypeError(f"a worker sent an object of {module}.{name}, which is not read")


def loads(data: Any, *, buffers: Iterable[Any] | None = None, **_: Any) -> Any:
    """Stand for `pickle.loads`."""
    try:
        return _Unpickler(io.BytesIO(data), buffers=buffers).load()
    except Exception as error:  # noqa: BLE001 -- of any other than a TypeError, Dask would not go on
        raise TypeError(str(error)) from None


@contextmanager
def client(address: str, security: Any) -> Iterator[Client]:
    """Give a client of a scheduler. Raises LostError if none answers, or it is gone."""
    for name in ("distributed", "distributed.client"):  # tracebacks: what is to be done, the driver says in a line
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # The repository is in the graph, so that Dask makes it anew if a worker is lost.
    configured = dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
    with mock.patch.object(pickle, "loads", loads), configured:
        try:
            found = Client(address, security=security, timeout=ANSWER)
        except OSError as error:
            raise LostError(f"no scheduler answers at {address}: {error}") from None
        with found:
            try:
                yield found
            except Exception as error:
                if found.status == "running" and not isinstance(error, CommClosedError | asyncio.TimeoutError):
                    raise
                stay = "Shards that came back are stored: type the command again to go on"
                raise LostError(f"the scheduler at {address} is gone. {stay}") from None


@contextmanager
def embedded(work: Path, without_gpu: int) -> Iterator[Client]:
    """Give a client of a scheduler and workers of this host: one a GPU, or some without one.

    All of them listen at the loopback address only, to whoever has a certificate that this user alone can read.
    """
    with tempfile.TemporaryDirectory() as folder:
        tls.make(Path(folder))
        words = ["--host=127.0.0.1", f"--tls={folder}", f"--work={work}", f"--without-gpu={without_gpu}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "kernelwatch", "fleet-workers", *words],
            cwd=ROOT,
            env=os.environ | _QUIET,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a Ctrl-C is for the driver, which ends it
            preexec_fn=mortal.end_with_parent,  # noqa: PLW1509 -- a system call, which waits for no other thread
        )
        assert process.stdout is not None
        try:
            with process.stdout as said:
                address = said.readline().strip()
            if not address:
                raise LostError("Dask's scheduler did not start; its output says why")
            with client(address, tls.security(address, Path(folder))) as found:
                wait_for(found, len(devices()) or without_gpu)
                yield found
        finally:
            process.kill()  # workers end with it
            process.wait()


def workers(client: Any) -> list[Any]:
    """Return what the scheduler knows of its workers."""
    found: dict[str, Any] = client.sync(client.scheduler.identity, n_workers=-1, callback_timeout=ANSWER)
    return list(found["workers"].values())


def wait_for(client: Client, count: int) -> None:
    """Wait for workers."""
    while len(workers(client)) < count:
        time.sleep(0.2)
