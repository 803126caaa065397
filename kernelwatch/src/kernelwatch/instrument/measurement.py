"""A measurement of one launch: by the run's measuring process if there is one, or else in this process."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from kernelwatch.instrument import device, exchange, jobs, machine, references, throttling
from kernelwatch.instrument.job import Outcome, Ready
from kernelwatch.instrument.session import Session
from kernelwatch.kernel import Launch

#: Samples of what is no benchmark, such as an experiment's launch.
SAMPLES = 10


def measured(launch: Launch, **how: Any) -> Outcome:
    """Measure a launch of a kernel of the installed commit, or of the instrument's copy.

    `how` are fields of `Job`. Raises as `outcome`, and NotImplementedError where the commit lacks the kernel.
    """
    return outcome(jobs.of(launch, **{"samples": SAMPLES, **how}))


def outcome(described: jobs.Description) -> Outcome:
    """Measure what is described, and verify its output.

    Raises
    ------
    NotImplementedError
        It cannot be measured on this machine.
    WrongOutputError
        Its output is wrong.
    MeasuringError
        The measuring process stopped.
    """
    address = os.environ.get(exchange.ADDRESS)
    if address:
        return exchange.ask(address, *described)
    session, ready = _session()
    (found,) = session.measure([described.job(ready)], lambda _: references.reader(described.reference.content()))
    return found


@cache
def _session() -> tuple[Session, Ready]:
    """What this process measures with. Its context ends with it."""
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as NVML counts, which watches the clocks
    handle = machine.nvml()
    session = Session(None if handle is None else throttling.Watch(handle))
    return session, device.ready()
