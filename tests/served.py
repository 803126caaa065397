"""A measuring process in a thread, with a session that measures nothing."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

import numpy as np

from kernelwatch.instrument import client, server
from kernelwatch.instrument.client import Channel, MeasuringError
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.job_messages import DeviceArray, DeviceFacts, Job, JobOutcome
from kernelwatch.instrument.memory import FetchReference
from kernelwatch.instrument.reference_memory import Reference

FACTS = DeviceFacts(arch="sm_90", multiprocessors=132)

#: Bytes of an output, and bytes of its expected content with the guard.
OUTPUT, LENGTH = 5000, 5632


def array(name: str = "output", direction: str = "out", **changes: Any) -> DeviceArray:
    fields: dict[str, Any] = {"name": name, "direction": direction, "dtype": "int8", "shape": (OUTPUT,)}
    return DeviceArray(**{**fields, **changes})


def job(**changes: Any) -> Job:
    fields: dict[str, Any] = {
        "name": "no kernel",
        "package_digest": "c0ffee",
        "cubin": b"\x7fELF",
        "entry": "none",
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "arrays": (array(), array("input 0", "in")),
        "parameters": bytes(16),
        "addresses": (0, 8),
        "useful_bytes": 2 * OUTPUT,
        "reference": "zeros",
        "samples": 2,
    }
    return Job(**{**fields, **changes})


class References:
    """A store of references, of which only those in `known` exist."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    def has_reference(self, name: str) -> bool:
        return name in self.known


class Session:
    """A session that calls `act` with the job, fetches the reference, and returns an outcome."""

    def __init__(self, act: Callable[[Job], Any] = lambda _: None) -> None:
        self.references = References()
        self.fetched: list[Bytes] = []
        self._act = act

    def has_room(self, job: Job) -> bool:
        return job.set_bytes < 1 << 40

    def needs_reference(self, job: Job) -> bool:
        return True

    def measure(self, jobs: Sequence[Job], fetch: FetchReference) -> list[JobOutcome]:
        self._act(jobs[0])
        content = np.empty(LENGTH, np.uint8)
        fetch(LENGTH)(0, content)
        self.fetched.append(content)
        self.references.known.add(jobs[0].reference)
        return [JobOutcome(samples=(1.0, 2.0), copies=(0.5, 0.5))]


@contextmanager
def serve_session(session: Session, folder: Path, **limits: Any) -> Iterator[str]:
    """Run a measuring server in a thread; yield its address."""
    address = str(folder / "measuring")
    answering = server.Server(session, FACTS, **limits)  # type: ignore[arg-type]
    goes_on: list[bool] = [True]

    def serve() -> None:
        with Listener(address, "AF_UNIX") as listener:
            while goes_on[-1]:
                with listener.accept() as connection:
                    try:
                        goes_on.append(answering.serve_connection(Channel(connection)))
                    except (EOFError, OSError, MeasuringError):
                        goes_on.append(goes_on[-1] and not stopping)

    stopping: list[bool] = []
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    while not Path(address).exists():
        time.sleep(0.001)
    yield address
    stopping.append(True)
    until = time.monotonic() + 5
    while thread.is_alive() and time.monotonic() < until:  # a connection ends the server's wait
        with suppress(MeasuringError):
            client.connect(address, time.monotonic() + 0.02).close()
        thread.join(0.01)
    assert not thread.is_alive()


def sevens(into: Bytes) -> None:
    into[:] = 7


REFERENCE = Reference(LENGTH, sevens)


def request_outcome(address: str, sent: Job, reference: Reference = REFERENCE) -> JobOutcome:
    return client.request_outcome(address, lambda _: sent, reference)
