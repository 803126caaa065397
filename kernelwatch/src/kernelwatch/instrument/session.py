"""Measures a job on the device: fills buffers, takes samples with a copy before each, then verifies the output.

A grid of many waves changes the times of later small launches in the same context, by up to 9 %
(docs/evidence/times.md, "Contexts remember"). Launches whose blocks all run at once are therefore measured in a context
of their own. They are verified there too, by uploads and launches of that size.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from kernelwatch.instrument import buffers, build_job, check_output, client, device, helper_kernels, memory, throttling
from kernelwatch.instrument.device import fits_at_once
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.memory import Fetch
from kernelwatch.instrument.protocol import Job, Outcome, Ready
from kernelwatch.instrument.timed_job import Arrangement
from kernelwatch.kernel import Launch

#: Samples of what is no benchmark, such as an experiment's launch.
SAMPLES = 10


def measured(launch: Launch, **how: Any) -> Outcome:
    """Measure a launch of a kernel of the installed commit, or of the instrument's copy.

    `how` are fields of `Job`. Raises as `outcome`, and NotImplementedError where the commit lacks the kernel.
    """
    return outcome(build_job.of(launch, **{"samples": SAMPLES, **how}))


def outcome(described: build_job.Description) -> Outcome:
    """Measure what is described, and verify its output: by the run's measuring process, or else in this process.

    Raises
    ------
    NotImplementedError
        It cannot be measured on this machine.
    WrongOutputError
        Its output is wrong.
    MeasuringError
        The measuring process stopped.
    """
    address = os.environ.get(client.ADDRESS)
    if address:
        return client.ask(address, *described)
    session, ready = _session()
    (found,) = session.measure([described.job(ready)], lambda _: memory.reader(described.reference.content()))
    return found


@cache
def _session() -> tuple[Session, Ready]:
    """What this process measures with. Its context ends with it."""
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as NVML counts, which watches the clocks
    return Session(throttling.watch()), device.ready()


@dataclass
class _Kept:
    """What is left of the last job, for one with the same buffers: its context, and on them who has used them."""

    jobs: list[Job]
    is_small: bool
    stack: ExitStack
    within: Callable[[], AbstractContextManager[None]] = nullcontext
    arranged: Arrangement | None = None
    work: ExitStack = field(default_factory=ExitStack)


class Session:
    """Measures one job after another; `watch` tells whether the GPU is throttled or shared."""

    def __init__(self, watch: throttling.Watch | None = None) -> None:
        device.context()
        self._watch = watch
        self._clean: Any = None
        self._kept: _Kept | None = None
        free, _total = device.cuda.mem_get_info()
        self.references = memory.References(free // 2)
        self._arena = memory.Arena()

    @staticmethod
    def has_room(job: Job) -> bool:
        """Whether one set of a job's buffers fits in the device's memory; more may not."""
        _free, total = device.cuda.mem_get_info()
        return job.set_bytes <= int(total)

    def measure(self, jobs: Sequence[Job], fetch: Fetch) -> list[Outcome]:
        """Time jobs that share buffers in turns, and verify the first, whose reference comes by `fetch`.

        Raises
        ------
        NotImplementedError
            The buffers do not fit in the device's memory, or in its L2 cache if the data must stay there.
        WrongOutputError
            The output is not the reference's.
        """
        fetch = cache(fetch)
        with self._arranged(jobs, fetch) as arranged:
            found = arranged.take(jobs, self._watch)
            self._verify(jobs[0], arranged, fetch)
        return found

    def verify(self, job: Job, fetch: Fetch) -> None:
        """Verify a job that has been timed. Arguments and errors as `measure`."""
        fetch = cache(fetch)
        with self._arranged([job], fetch) as arranged:
            self._verify(job, arranged, fetch)

    @contextmanager
    def _arranged(self, jobs: Sequence[Job], fetch: Fetch) -> Iterator[Arrangement]:
        """Buffers of jobs that share them, in the context that these need; those of the job before if it had the same.

        A job that comes again gets new ones: what two rounds read of it has only its numbers in common.
        """
        job = jobs[0]
        is_small = bool(job.l2_fetch_bytes) or (not job.isolated and any(map(fits_at_once, jobs)))
        if job.in_l2 and job.set_bytes > device.l2_bytes():
            raise NotImplementedError(f"needs {job.set_bytes} bytes of L2 cache, the GPU has {device.l2_bytes()}")
        kept = self._kept
        if kept is None or job in kept.jobs or kept.is_small != is_small or not kept.jobs[0].shares_buffers(job):
            self.close()
            kept = self._kept = _Kept([], is_small, ExitStack())
            kept.within = self._context(job, kept.stack) if is_small else nullcontext
        kept.jobs.append(job)
        is_done = False
        try:
            with kept.within():
                kept.arranged = kept.arranged or self._arrangement(job, kept, fetch)
                yield kept.arranged
                kept.arranged.forget_job()
            is_done = not kept.arranged.rotation.given and job.oracle is None
        finally:
            if not is_done:
                self.close()

    def close(self) -> None:
        """Give back the buffers of the last job."""
        kept, self._kept = self._kept, None
        if kept is not None:
            with kept.within():
                kept.work.close()
            kept.stack.close()

    def _context(self, job: Job, stack: ExitStack) -> Callable[[], AbstractContextManager[None]]:
        """A context in which no grid of many waves has run: one for all jobs, unless one of theirs is such a grid.

        A job that sets the fetch granularity of the L2 cache has a context of its own, too.
        """
        others = [helper_kernels.copy(job.useful_bytes // 2), *([job.oracle] if job.oracle else [])]
        if not job.l2_fetch_bytes and all(map(fits_at_once, others)):
            self._clean = self._clean or device.new_context()
            return partial(device.within, self._clean)
        context = device.new_context(job.l2_fetch_bytes or 0)
        stack.callback(context.detach)
        return partial(device.within, context)

    def _arrangement(self, job: Job, kept: _Kept, fetch: Fetch) -> Arrangement:
        """Return a job's buffers; what the session keeps makes room for them if need be."""
        _, given, end = buffers.stretches(job.arrays, is_verified=job.is_verified)
        held = self.references.host(job.reference, end, fetch) if given else np.empty(0, np.uint8)
        contents = {each.array.name: each.of(held) for each in given}
        allocate = device.allocate if kept.is_small else self._arena.allocate
        made = partial(Arrangement, job, kept.work, allocate, contents, has_waves=not kept.is_small)
        for forget in (self.references.forget, self._arena.forget):
            try:
                return made()
            except NotImplementedError:
                if not self.has_room(job):
                    raise  # nor would it fit without them
                forget()
        return made()

    def _verify(self, job: Job, arranged: Arrangement, fetch: Fetch) -> None:
        expected: Callable[[], Bytes] | None = None
        on_device: Callable[[], int | None] = lambda: None  # noqa: E731 -- one of two
        if job.is_verified:
            asked = (job.reference, buffers.stretches(job.arrays, is_verified=True)[2], fetch)
            expected = partial(self.references.host, *asked)
            if arranged.has_waves:
                on_device = partial(self.references.device, *asked)
        elif job.oracle is not None:
            written = arranged.written_by(job.oracle)
            expected = lambda: written  # noqa: E731 -- as above
        arranged.launch_once(job)
        check_output.check(job, arranged.rotation, expected, on_device)
