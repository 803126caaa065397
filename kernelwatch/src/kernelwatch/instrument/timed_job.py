"""A job's buffers on the device, what is launched on them, and the samples that are taken of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any

import numpy as np

from kernelwatch.instrument import buffers, device, helper_kernels, throttling
from kernelwatch.instrument.device import BoundKernel
from kernelwatch.instrument.graph_replay import Cycle, Instrument, Isolated, back_to_back, once
from kernelwatch.instrument.inputs import POISON, Bytes
from kernelwatch.instrument.protocol import Call, Job, Outcome
from kernelwatch.instrument.stopping_rule import suffice


class Arrangement:
    """A job's buffers, and what is launched on them; `stack` frees everything.

    `allocate` and `given` as of `Rotation`; grids of many waves are launched only if it `has_waves` anyway. Raises
    NotImplementedError if the buffers do not fit in the device's free memory.
    """

    def __init__(
        self,
        job: Job,
        stack: ExitStack,
        allocate: Callable[..., list[Any]] | None = None,
        given: Mapping[str, Bytes] = MappingProxyType({}),
        *,
        has_waves: bool = True,
    ) -> None:
        self._stack, self._job, self.has_waves = stack, job, has_waves
        sets = 1 if job.in_l2 else buffers.sets_for(job.set_bytes, device.l2_bytes())
        self.rotation = buffers.Rotation(job.arrays, sets, job.useful_bytes // 2, given, allocate)
        stack.callback(self.rotation.free)
        self._stream = device.cuda.Stream()
        #: Ends what one job has launched.
        self._graphs = stack.enter_context(ExitStack())
        self._control: Instrument | None = None
        #: What graphs launch stays loaded as long as they: that of the copies first, and then of a job.
        self._functions: list[BoundKernel] = []

    def forget_job(self) -> None:
        """End what the last job has launched."""
        self._graphs.close()
        del self._functions[1:]

    def launches(self, job: Job) -> Cycle:
        """Return a job's launches, each on the set of buffers whose turn it is."""
        sets = [self.rotation.addresses(index) for index in range(self.rotation.sets)]
        return self._cycle(job, sets, job.set_bytes, self.rotation.restore)

    def _copies(self) -> Cycle:
        """Return copies of the job's useful bytes within the same memory: the control."""
        length = self._job.useful_bytes // 2
        slices = self.rotation.slices(length)
        return self._cycle(
            helper_kernels.copy(length), slices[:1] if self._job.in_l2 else slices, 2 * length, lambda: None
        )

    def _cycle(self, call: Call, places: Sequence[tuple[int, ...]], moved: int, restore: Callable[[], None]) -> Cycle:
        """Return calls with the addresses of each place in turn."""
        kernel = BoundKernel(call)
        self._functions.append(kernel)
        given = [kernel.given(*addresses) for addresses in places]
        launch = lambda index, stream: kernel(stream, given[index % len(given)])  # noqa: E731 -- called most often
        return Cycle(launch, len(given), moved, self._stream, restore)

    def take(self, jobs: Sequence[Job], watch: throttling.Watch | None) -> list[Outcome]:
        """Take samples of jobs in turns until they suffice, each turn behind a copy.

        What was taken while the GPU was held back is taken again, as long as samples are left.
        """
        control = self._control = self._control or self._begun(self._copies(), self._stack)
        works = [self._begun(self.launches(job), self._graphs) for job in jobs]
        copies: list[float] = []
        samples: list[list[float]] = [[] for _ in jobs]
        held_back: dict[str, None] = {}
        fewest, most = self._job.samples, max(self._job.samples, self._job.most)
        for turn in range(most):
            copies.append(control.sample())
            for place in range(len(works))[:: 1 if turn % 2 else -1]:
                samples[place].append(works[place].sample())
            reasons = watch.held_back() if watch else ()
            if reasons and len(copies) - 1 + most - turn - 1 >= fewest:
                for each in (copies, *samples):
                    each.pop()
            else:
                held_back |= dict.fromkeys(reasons)
            if len(copies) >= fewest and all(map(suffice, samples)):
                break
        return [Outcome(samples=tuple(each), copies=tuple(copies), held_back=tuple(held_back)) for each in samples]

    def _begun(self, cycle: Cycle, stack: ExitStack) -> Instrument:
        """Return an instrument that has been replayed once, which also brings its graph onto the device."""
        made: Instrument = (Isolated if self._job.isolated else back_to_back)(cycle, stack)
        made.sample()
        return made

    def written_by(self, oracle: Job) -> Bytes:
        """Return what a kernel writes, as what is expected of one that must do the same."""
        self.launch_once(oracle)
        outputs, _, end = buffers.stretches(self._job.arrays, is_verified=True)
        found = np.full(end, POISON, np.uint8)
        for array, start, length in outputs:
            held = np.empty(array.nbytes, np.uint8)
            self.rotation.read(array, 0, 0, held)
            if array.ulp is not None:
                held = held.view(array.dtype).astype(np.float64).view(np.uint8)
            found[start : start + length] = held
        return found

    def launch_once(self, job: Job) -> None:
        """Launch on every set, poisoned before."""
        self.rotation.poison(by_upload=not self.has_waves)
        cycle = self.launches(job)

        def capture() -> None:
            for index in range(cycle.length):
                cycle.enqueue(index, cycle.stream)

        once(capture, cycle.stream)
