"""Measures a job on the device: fills buffers, takes samples with a copy before each, then verifies the output.

A grid of many waves changes the times of later small launches in the same context, by up to 9 %
(docs/evidence/log.md, "A context remembers"). Launches whose blocks all run at once are therefore measured in a context
of their own. They are verified there too, by uploads and launches of that size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from kernelwatch.instrument import buffers, comparison, device, throttling, tools
from kernelwatch.instrument.arena import Arena
from kernelwatch.instrument.bound_kernel import BoundKernel, fits_at_once
from kernelwatch.instrument.comparison import Expected
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.isolated import Isolated
from kernelwatch.instrument.job import Job, Outcome
from kernelwatch.instrument.poison import POISON
from kernelwatch.instrument.references import Fetch, References, Source
from kernelwatch.instrument.replay import Cycle, Instrument, back_to_back, once
from kernelwatch.instrument.sampling import suffice

#: With extra launches, a turn holds a multiple of this many.
_TURN = 100


class Session:
    """Measures one job after another.

    Parameters
    ----------
    watch : Watch, optional
        Tells whether the GPU is throttled or shared.
    """

    def __init__(self, watch: throttling.Watch | None = None) -> None:
        device.lasting()
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
        """Time jobs that share buffers in turns, and verify the first.

        Parameters
        ----------
        jobs : sequence of Job
            One or more.
        fetch : callable
            Callable (bytes) -> what asv's process writes for the first, in host memory.

        Raises
        ------
        NotImplementedError
            The buffers do not fit in the device's memory, or in its L2 cache if the data must stay there.
        WrongOutputError
            The output is not the reference's.
        """
        first, spent, fetch = jobs[0], Stopwatch(), cache(fetch)
        is_small = not first.isolated and any(fits_at_once(job.grid, job.block) for job in jobs)
        with self._arranged(first, fetch, spent, is_small=is_small) as arranged:
            samples, copies, held_back = arranged.take(jobs, self._watch, spent)
            self._verify(first, arranged, fetch, spent, is_small=is_small)
        return [
            Outcome(
                samples=tuple(each),
                copies=tuple(copies),
                held_back=held_back,
                seconds=spent.seconds if place == 0 else {},
            )
            for place, each in enumerate(samples)
        ]

    def verify(self, job: Job, fetch: Fetch) -> None:
        """Verify a job that has been timed. Arguments and errors as `measure`."""
        spent, is_small, fetch = Stopwatch(), not job.isolated and fits_at_once(job.grid, job.block), cache(fetch)
        with self._arranged(job, fetch, spent, is_small=is_small) as arranged:
            self._verify(job, arranged, fetch, spent, is_small=is_small)

    @contextmanager
    def _arranged(self, job: Job, fetch: Fetch, spent: Stopwatch, *, is_small: bool) -> Iterator[Arrangement]:
        """Buffers of a job, in the context that it needs; those of the job before, if that had the same.

        A job that comes again gets new ones: what two processes of asv's read of it has only its numbers in common.
        """
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
                        given = self._given(job, fetch)
                        allocate = device.allocate if is_small else self._arena.allocate
                        kept.arranged = self._arrangement(job, kept.work, allocate, given)
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

    def _verify(self, job: Job, arranged: Arrangement, fetch: Fetch, spent: Stopwatch, *, is_small: bool) -> None:
        def timed_fetch(length: int) -> Source:
            with spent.on("reference"):
                return fetch(length)

        with spent.on("verification"):
            expected = None
            if job.is_verified:
                asked = (job.reference, buffers.stretches(job.arrays, is_verified=True)[2], timed_fetch)
                kept, held = partial(self.references.device, *asked), partial(self.references.host, *asked)
                expected = Expected(held) if is_small else Expected(held, kept)
            elif job.oracle is not None:
                found = arranged.written_by(job.oracle, has_waves=not is_small)
                expected = Expected(lambda: found)
            arranged.launch_once(job, has_waves=not is_small)
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

    def _arrangement(
        self, job: Job, stack: ExitStack, allocate: Callable[..., list[Any]], given: Mapping[str, Bytes]
    ) -> Arrangement:
        """Return a job's buffers; what the session keeps makes room for them if need be."""
        for forget in (self.references.forget, self._arena.forget):
            try:
                return Arrangement(job, stack, allocate, given)
            except NotImplementedError:
                if not self.has_room(job):
                    raise  # nor would it fit without them
                forget()
        return Arrangement(job, stack, allocate, given)


@dataclass
class _Kept:
    """What is left of the last job, for one with the same buffers: its context, and on them who has used them."""

    jobs: list[Job]
    is_small: bool
    stack: ExitStack
    within: Callable[[], AbstractContextManager[None]] = nullcontext
    arranged: Arrangement | None = None
    work: ExitStack = field(default_factory=ExitStack)


class Arrangement:
    """A job's buffers, and what is launched on them.

    Parameters
    ----------
    job : Job
        Whose buffers.
    stack : ExitStack
        Frees everything when it is closed.
    allocate : callable, optional
        Where the buffers' memory comes from, as of `Rotation`.
    given : mapping
        What arrays hold at first, as of `Rotation`.

    Raises
    ------
    NotImplementedError
        The buffers do not fit in the device's free memory.
    """

    def __init__(
        self,
        job: Job,
        stack: ExitStack,
        allocate: Callable[..., list[Any]] | None = None,
        given: Mapping[str, Bytes] = MappingProxyType({}),
    ) -> None:
        self._stack, self._job = stack, job
        sets = 1 if job.in_l2 else buffers.sets_for(job.set_bytes, device.l2_bytes())
        self.rotation = buffers.Rotation(job.arrays, sets, job.useful_bytes // 2, given, allocate)
        stack.callback(self.rotation.free)
        self._stream = device.cuda.Stream()
        #: Ends what one job has launched.
        self.graphs = stack.enter_context(ExitStack())
        self._control: Instrument | None = None
        #: What graphs launch stays loaded as long as they: that of the copies first, and then of a job.
        self._functions: list[BoundKernel] = []

    def forget_job(self) -> None:
        """End what the last job has launched."""
        self.graphs.close()
        del self._functions[1:]

    def launches(self, job: Job) -> Cycle:
        """Return a job's launches, each on the set of buffers whose turn it is."""
        kernel, sets = BoundKernel.of(job), self.rotation.sets
        self._functions.append(kernel)
        given = [kernel.given(*self.rotation.addresses(index)) for index in range(sets)]

        def enqueue(index: int, stream: Any) -> None:
            kernel(stream, given[index % sets])
            if job.every and index % job.every == job.every - 1:
                kernel(stream, given[(index + sets // 2) % sets])  # far in turn: what it moves is not in L2 either

        length = -(-sets // _TURN) * _TURN if job.every else sets
        return Cycle(enqueue, length, job.set_bytes, self._stream, self.rotation.restore)

    def copies(self) -> Cycle:
        """Return copies of the job's useful bytes within the same memory: the control."""
        length = self._job.useful_bytes // 2
        copy = tools.copier(length)
        self._functions.append(copy)
        slices = 1 if self._job.in_l2 else self.rotation.slices(length)
        given = [copy.given(*self.rotation.slice(index, length)) for index in range(slices)]
        return Cycle(lambda index, stream: copy(stream, given[index % slices]), slices, 2 * length, self._stream)

    def take(
        self, jobs: Sequence[Job], watch: throttling.Watch | None, spent: Stopwatch
    ) -> tuple[list[list[float]], list[float], tuple[str, ...]]:
        """Return samples of each job and of the copies before them, in seconds a launch, and what held the GPU back.

        What was taken while the GPU was held back is taken again, as long as samples are left.
        """
        with spent.on("graphs"):
            if self._control is None:
                self._control = self._begun(self.copies(), self._stack)
            control, works = self._control, [self._begun(self.launches(job), self.graphs) for job in jobs]
        copies: list[float] = []
        samples: list[list[float]] = [[] for _ in jobs]
        held_back: dict[str, None] = {}
        fewest = self._job.samples
        most = max(fewest, self._job.most)
        for turn in range(most):
            with spent.on("samples"):
                copies.append(_sample(control))
                for place in range(len(works))[:: 1 if turn % 2 else -1]:
                    samples[place].append(_sample(works[place]))
            with spent.on("clocks"):
                reasons = watch.held_back() if watch else ()
            if reasons and len(copies) - 1 + most - turn - 1 >= fewest:
                for each in (copies, *samples):
                    each.pop()
            else:
                held_back |= dict.fromkeys(reasons)
            if len(copies) >= fewest and all(map(suffice, samples)):
                break
        return samples, copies, tuple(held_back)

    def _begun(self, cycle: Cycle, stack: ExitStack) -> Instrument:
        """Return an instrument that has been replayed once, which also brings its graph onto the device."""
        made: Instrument = (Isolated if self._job.isolated else back_to_back)(cycle, stack)
        _sample(made)
        return made

    def written_by(self, oracle: Job, *, has_waves: bool) -> Bytes:
        """Return what a kernel writes, as what is expected of one that must do the same."""
        self.launch_once(oracle, has_waves=has_waves)
        outputs, _, end = buffers.stretches(self._job.arrays, is_verified=True)
        found = np.full(end, POISON, np.uint8)
        for array, start, length in outputs:
            held = np.empty(array.nbytes, np.uint8)
            self.rotation.read(array, 0, 0, held)
            if array.ulp is not None:
                held = held.view(array.dtype).astype(np.float64).view(np.uint8)
            found[start : start + length] = held
        return found

    def launch_once(self, job: Job, *, has_waves: bool) -> None:
        """Launch on every set, poisoned before: by a grid of many waves only where that `has_waves` anyway."""
        self.rotation.poison(by_upload=not has_waves)
        cycle = self.launches(job)

        def capture() -> None:
            for index in range(self.rotation.sets):
                cycle.enqueue(index, self._stream)

        once(capture, self._stream)


def _sample(instrument: Instrument) -> float:
    instrument()
    return instrument.seconds()


class Stopwatch:
    """Seconds spent on each kind of work; every second counts once."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._within = 0.0

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Add the seconds of a `with` block, less those of blocks within it."""
        begin, outside = time.perf_counter(), self._within
        self._within = 0.0
        try:
            yield
        finally:
            took = time.perf_counter() - begin
            self.seconds[what] = self.seconds.get(what, 0.0) + took - self._within
            self._within = outside + took
