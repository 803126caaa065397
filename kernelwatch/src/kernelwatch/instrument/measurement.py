"""Measures a job on the device: fills buffers, takes samples with a copy before each, then verifies the output.

A grid of many waves changes the times of later small launches in the same context, by up to 9 %
(docs/evidence/log.md, "A context remembers"). Launches whose blocks all run at once are therefore measured in a context
of their own. They are verified there too, by uploads and launches of that size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
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
from kernelwatch.instrument.references import Fetch, References
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
        """Buffers of a job, in the context that it needs."""
        if job.in_l2 and job.set_bytes > device.l2_bytes():
            raise NotImplementedError(f"needs {job.set_bytes} bytes of L2 cache, the GPU has {device.l2_bytes()}")
        with ExitStack() as stack:
            with spent.on("context"):
                if is_small:
                    stack.enter_context(self._small_context(job))
            work = stack.enter_context(ExitStack())
            with spent.on("buffers"):
                given = self._given(job, fetch)
                arranged = self._arrangement(job, work, device.allocate if is_small else self._arena.allocate, given)
            yield arranged
            with spent.on("end"):
                work.close()

    def _given(self, job: Job, fetch: Fetch) -> dict[str, Bytes]:
        """Return what arrays hold at first that asv's process writes, each with its guard, by name."""
        _, given, end = buffers.stretches(job.arrays, is_verified=job.is_verified)
        if not given:
            return {}
        held = self.references.host(job.reference, end, fetch)
        return {one.array.name: held[one.start : one.start + buffers.pitch(one.length)] for one in given}

    def _verify(self, job: Job, arranged: Arrangement, fetch: Fetch, spent: Stopwatch, *, is_small: bool) -> None:
        def timed_fetch(length: int) -> Bytes:
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

    @contextmanager
    def _small_context(self, job: Job) -> Iterator[None]:
        """A context in which no grid of many waves has run: one for all jobs, unless one of theirs is such a grid."""
        others = [(job.oracle.grid, job.oracle.block)] if job.oracle is not None else []
        if all(fits_at_once(*each) for each in (tools.copy_shape(job.useful_bytes // 2), *others)):
            self._clean = self._clean or device.new_context()
            with device.within(self._clean):
                yield
        else:
            context = device.new_context()
            with device.within(context):
                yield
            context.detach()

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
        self._functions: list[BoundKernel] = []

    def _kept(self, kernel: BoundKernel) -> BoundKernel:
        """Keep a kernel alive as long as its graphs."""
        self._functions.append(kernel)
        return kernel

    def launches(self, job: Job) -> Cycle:
        """Return a job's launches, each on the set of buffers whose turn it is."""
        kernel, sets = self._kept(BoundKernel.of(job)), self.rotation.sets
        addresses = [self.rotation.addresses(index) for index in range(sets)]

        def enqueue(index: int, stream: Any) -> None:
            kernel(stream, *addresses[index % sets])
            if job.every and index % job.every == job.every - 1:
                kernel(stream, *addresses[(index + sets // 2) % sets])  # far in turn: what it moves is not in L2 either

        length = -(-sets // _TURN) * _TURN if job.every else sets
        return Cycle(enqueue, length, job.set_bytes, self._stream, self.rotation.restore)

    def copies(self) -> Cycle:
        """Return copies of the job's useful bytes within the same memory: the control."""
        length = self._job.useful_bytes // 2
        copy = self._kept(tools.copier(length))
        slices = 1 if self._job.in_l2 else self.rotation.slices(length)
        addresses = [self.rotation.slice(index, length) for index in range(slices)]
        return Cycle(lambda index, stream: copy(stream, *addresses[index % slices]), slices, 2 * length, self._stream)

    def take(
        self, jobs: Sequence[Job], watch: throttling.Watch | None, spent: Stopwatch
    ) -> tuple[list[list[float]], list[float], tuple[str, ...]]:
        """Return samples of each job and of the copies before them, in seconds a launch, and what held the GPU back.

        What was taken while the GPU was held back is taken again, as long as samples are left.
        """
        with spent.on("graphs"):
            control, *works = (self._instrument(cycle) for cycle in (self.copies(), *map(self.launches, jobs)))
            for instrument in (control, *works):  # the first replay also brings the graph onto the device
                instrument()
                instrument.seconds()
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

    def _instrument(self, cycle: Cycle) -> Instrument:
        return (Isolated if self._job.isolated else back_to_back)(cycle, self._stack)

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
