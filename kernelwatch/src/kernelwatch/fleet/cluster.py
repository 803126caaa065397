"""The scheduler and its workers, of which the driver is a client and no more, on one host as on many."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
from distributed import Client

from kernelwatch import mortal
from kernelwatch.fleet import confined, tls
from kernelwatch.fleet.workers import devices
from kernelwatch.project import ROOT

#: Seconds for an answer of the scheduler, and for a process to begin or end.
ANSWER, PATIENCE = 20.0, 60.0

#: Dask's servers say little, and show no pages to everybody on this host.
_QUIET = {"DASK_LOGGING__DISTRIBUTED": "error"} | {
    f"DASK_DISTRIBUTED__{server}__HTTP__ROUTES": "[]" for server in ("SCHEDULER", "WORKER")
}


class LostError(RuntimeError):
    """The scheduler is gone."""


@contextmanager
def client(address: str, security: Any) -> Iterator[Client]:
    """Give a client of a scheduler, which unpickles nothing but bytes. Raises LostError if none answers."""
    for name in ("distributed", "distributed.client"):  # tracebacks: what is to be done, the driver says in a line
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # The repository and what is compiled are in the graph, so that Dask makes them anew if a worker is lost.
    with confined.driver(), dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
        try:
            found = Client(address, security=security, timeout=ANSWER)
        except OSError as error:
            raise LostError(f"no scheduler answers at {address}: {error}") from None
        with found:
            yield found


@contextmanager
def embedded(work: Path, without_gpu: int) -> Iterator[Client]:
    """Give a client of a scheduler and workers of this host: one a GPU, or some without one.

    All of them listen at the loopback address only, to whoever has a certificate that this user alone can read.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        certificate, note = Path(folder), Path(folder, "scheduler.json")
        tls.make(certificate)
        words = ["--host=127.0.0.1", "--port=0", "--no-dashboard", "--dashboard-address=127.0.0.1:0"]
        words += [f"--scheduler-file={note}", *tls.words(certificate)]
        stack.enter_context(_running("distributed.cli.dask_scheduler", words))
        address = _noted(note)
        words = ["fleet-workers", address, "--host=127.0.0.1", f"--tls={folder}"]
        words += [f"--work={work}", f"--without-gpu={without_gpu}"]
        stack.enter_context(_running("kernelwatch", words))
        found = stack.enter_context(client(address, tls.security(address, certificate)))
        wait_for(found, len(devices()) or without_gpu)
        yield found


@contextmanager
def _running(module: str, words: list[str]) -> Iterator[None]:
    """Run a module of Dask's or ours, which ends with this process."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *words],
        cwd=ROOT,
        env=os.environ | _QUIET,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # a Ctrl-C is for the driver, which ends it
        preexec_fn=mortal.end_with_parent,  # noqa: PLW1509 -- a system call, which waits for no other thread
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _noted(note: Path) -> str:
    """Return the address that a scheduler has written down. Raises LostError."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return str(json.loads(note.read_bytes())["address"])
        time.sleep(0.05)
    raise LostError("Dask's scheduler did not start; its output says why")


def workers(client: Client) -> list[Any]:
    """Return what the scheduler knows of its workers. Raises LostError."""
    asked: Any = client  # which has no scheduler once it is closed
    try:
        with losing(client):
            found: dict[str, Any] = asked.sync(asked.scheduler.identity, n_workers=-1, callback_timeout=ANSWER)
    except (OSError, asyncio.TimeoutError):
        raise _lost(client) from None
    return list(found["workers"].values())


def wait_for(client: Client, count: int) -> None:
    """Wait for workers. Raises LostError."""
    while len(workers(client)) < count:
        time.sleep(0.2)


@contextmanager
def losing(client: Client) -> Iterator[None]:
    """Say of whatever happens without a scheduler that it is gone. Raises LostError."""
    try:
        yield
    except Exception:
        if client.status == "running":
            raise
        raise _lost(client) from None


def _lost(client: Any) -> LostError:
    stay = "Shards that came back are stored: type the command again to go on"
    return LostError(f"the scheduler at {client._start_arg} is gone. {stay}")
