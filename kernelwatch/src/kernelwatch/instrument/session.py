"""Measures a job on the device: fills buffers, takes samples with a copy before each, then verifies the output.

A grid of many waves changes the times of later small launches in the same context, by up to 9 %
(docs/evidence/times.md, "Contexts remember"). Launches whose blocks all run at once are therefore measured in a context
of their own. They are verified there too, by uploads and launches of that size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import msgspec

from kernelwatch.instrument import buffers, comparison, device, throttling, tools
from kernelwatch.instrument.arena import Arena
from kernelwatch.instrument.arrangement import Arrangement
from kernelwatch.instrument.bound_kernel import fits_at_once
from kernelwatch.instrument.clock import Stopwatch
from kernelwatch.instrument.comparison import Expected
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.job import Job, Outcome
from kernelwatch.instrument.references import Fetch, References, Source


class Session:
    """Measures one job after another; `watch` tells whether the GPU is throttled or shared."""

    def __init__(self, watch: throttling.Watch | None = None) -> None:
        device.context()
        self._watch = watch
        self._clean: Any = None
        self._kept: _Kept | None = None
        free, _total = device.cuda.mem_get_info()
        self.references = References(free // 2)
        self._arena = Arena()

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
        spent, fetch = Stopwatch(), cache(fetch)
        with self._arranged(jobs, fetch, spent) as arranged:
            found = arranged.take(jobs, self._watch, spent)
            self._verify(jobs[0], arranged, fetch, spent)
        return [msgspec.structs.replace(found[0], seconds=spent.seconds), *found[1:]]

    def verify(self, job: Job, fetch: Fetch) -> None:
        """Verify a job that has been timed. Arguments and errors as `measure`."""
        spent, fetch = Stopwatch(), cache(fetch)
        with self._arranged([job], fetch, spent) as arranged:
            self._verify(job, arranged, fetch, spent)

    @contextmanager
    def _arranged(self, jobs: Sequence[Job], fetch: Fetch, spent: Stopwatch) -> Iterator[Arrangement]:
        """Buffers of jobs that share them, in the context that these need; those of the job before if it had the same.

        A job that comes again gets new ones: what two processes of asv's read of it has only its numbers in common.
        """
        job = jobs[0]
        is_small = not job.isolated and any(fits_at_once(each.grid, each.block) for each in jobs)
        if job.in_l2 and job.set_bytes > device.l2_bytes():
            raise NotImplementedError(f"needs {job.set_bytes} bytes of L2 cache, the GPU has {device.l2_bytes()}")
        kept = self._kept
        if kept is None or job in kept.jobs or kept.is_small != is_small or not kept.jobs[0].shares_buffers(job):
            with spent.on("end"):
                self.close()
            kept = self._kept = _Kept([], is_small, ExitStack())
            with spent.on("context"):
                kept.within = self._context(job, kept.stack) if is_small else nullcontext
        kept.jobs.append(job)
        is_done = False
        try:
            with kept.within():
                if kept.arranged is None:
                    with spent.on("buffers"):
                        kept.arranged = self._arrangement(job, kept, self._given(job, fetch))
                yield kept.arranged
                with spent.on("end"):
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

    def _given(self, job: Job, fetch: Fetch) -> dict[str, Bytes]:
        """Return what arrays hold at first that asv's process writes, each with its guard, by name."""
        _, given, end = buffers.stretches(job.arrays, is_verified=job.is_verified)
        if not given:
            return {}
        held = self.references.host(job.reference, end, fetch)
        return {one.array.name: held[one.start : one.start + buffers.pitch(one.length)] for one in given}

    def _verify(self, job: Job, arranged: Arrangement, fetch: Fetch, spent: Stopwatch) -> None:
        def timed_fetch(length: int) -> Source:
            with spent.on("reference"):
                return fetch(length)

        with spent.on("verification"):
            expected = None
            if job.is_verified:
                asked = (job.reference, buffers.stretches(job.arrays, is_verified=True)[2], timed_fetch)
                held, kept = partial(self.references.host, *asked), partial(self.references.device, *asked)
                expected = Expected(held, kept) if arranged.has_waves else Expected(held)
            elif job.oracle is not None:
                found = arranged.written_by(job.oracle)
                expected = Expected(lambda: found)
            arranged.launch_once(job)
            comparison.check(job, arranged.rotation, expected)

    def _context(self, job: Job, stack: ExitStack) -> Callable[[], AbstractContextManager[None]]:
        """A context in which no grid of many waves has run: one for all jobs, unless one of theirs is such a grid."""
        others = [(job.oracle.grid, job.oracle.block)] if job.oracle is not None else []
        if all(fits_at_once(*each) for each in (tools.copy_shape(job.useful_bytes // 2), *others)):
            self._clean = self._clean or device.new_context()
            return partial(device.within, self._clean)
        context = device.new_context()
        stack.callback(context.detach)
        return partial(device.within, context)

    def _arrangement(self, job: Job, kept: _Kept, given: Mapping[str, Bytes]) -> Arrangement:
        """Return a job's buffers; what the session keeps makes room for them if need be."""
        allocate = device.allocate if kept.is_small else self._arena.allocate
        made = partial(Arrangement, job, kept.work, allocate, given, has_waves=not kept.is_small)
        for forget in (self.references.forget, self._arena.forget):
            try:
                return made()
            except NotImplementedError:
                if not self.has_room(job):
                    raise  # nor would it fit without them
                forget()
        return made()


@dataclass
class _Kept:
    """What is left of the last job, for one with the same buffers: its context, and on them who has used them."""

    jobs: list[Job]
    is_small: bool
    stack: ExitStack
    within: Callable[[], AbstractContextManager[None]] = nullcontext
    arranged: Arrangement | None = None
    work: ExitStack = field(default_factory=ExitStack)
