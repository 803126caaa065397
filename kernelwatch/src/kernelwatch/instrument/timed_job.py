"""The samples of a job on the device: its buffers, the launches that use them, and their times."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any

import numpy as np

from kernelwatch.instrument import buffers, device, helper_kernels, throttling
from kernelwatch.instrument.device import BoundKernel
from kernelwatch.instrument.graph_replay import Cycle, IsolatedLaunches, TimedGraph, make_back_to_back, run_once
from kernelwatch.instrument.inputs import POISON, Bytes
from kernelwatch.instrument.job_messages import Call, Job, JobOutcome
from kernelwatch.instrument.stopping_rule import is_sufficient


class TimedJob:
    """Takes samples of launches that use the buffers of a job. `stack` frees the buffers.

    `allocate` and `contents` are parameters of `Rotation`. Without `allows_waves`, which allows grids of many waves,
    outputs are poisoned by uploads. Raises NotImplementedError if the buffers do not fit in the device's free memory.
    """

    def __init__(
        self,
        job: Job,
        stack: ExitStack,
        allocate: Callable[..., list[Any]] | None = None,
        contents: Mapping[str, Bytes] = MappingProxyType({}),
        *,
        allows_waves: bool = True,
    ) -> None:
        self._stack, self._job, self.allows_waves = stack, job, allows_waves
        sets = 1 if job.in_l2 else buffers.count_sets(job.set_bytes, device.l2_bytes())
        self.rotation = buffers.Rotation(job.arrays, sets, job.useful_bytes // 2, contents, allocate)
        stack.callback(self.rotation.free)
        self._stream = device.cuda.Stream()
        #: Stack that frees the graphs of one job.
        self._graphs = stack.enter_context(ExitStack())
        self._copy: TimedGraph | None = None
        #: Kernels of copies and of jobs. They must stay loaded as long as the graphs that launch them.
        self._copies: list[BoundKernel] = []
        self._functions: list[BoundKernel] = []

    def release_job(self) -> None:
        """Free the graphs and kernels of the last job, but not those of the copy."""
        self._graphs.close()
        self._functions.clear()

    def make_launches(self, job: Job) -> Cycle:
        """Return a job's launches, each on the next set of buffers."""
        sets = [self.rotation.addresses(index) for index in range(self.rotation.sets)]
        return self._make_cycle(job, self._functions, sets, job.set_bytes, self.rotation.restore_inputs)

    def _make_copies(self) -> Cycle:
        length = self._job.useful_bytes // 2
        slices = self.rotation.slices(length)[: 1 if self._job.in_l2 else None]
        call = helper_kernels.make_copy_call(length)
        return self._make_cycle(call, self._copies, slices, 2 * length, lambda: None)

    def _make_cycle(
        self,
        call: Call,
        loaded: list[BoundKernel],
        address_sets: Sequence[tuple[int, ...]],
        bytes_moved: int,
        restore: Callable[[], None],
    ) -> Cycle:
        kernel = BoundKernel(call)
        loaded.append(kernel)
        packed = [kernel.pack_addresses(*addresses) for addresses in address_sets]
        launch = lambda index, stream: kernel(stream, packed[index % len(packed)])  # noqa: E731 -- called most often
        return Cycle(launch, len(packed), bytes_moved, self._stream, restore)

    def take_samples(self, jobs: Sequence[Job], watch: throttling.ThrottleWatch | None) -> list[JobOutcome]:
        """Take interleaved samples of jobs until the samples suffice; return an outcome for each job.

        In each turn, time a copy, then take a sample of each job, in reverse order every other turn. There are at most
        `Job.most` turns, but at least `Job.samples`. If the GPU was throttled, drop the turn's samples, as long as the
        turns left can still give the minimum number of samples.
        """
        copy = self._copy = self._copy or self._make_timed_graph(self._make_copies(), self._stack)
        timed_graphs = [self._make_timed_graph(self.make_launches(job), self._graphs) for job in jobs]
        copies: list[float] = []
        samples: list[list[float]] = [[] for _ in jobs]
        throttle_reasons: dict[str, None] = {}
        fewest, most = self._job.samples, max(self._job.samples, self._job.most)
        for turn in range(most):
            copies.append(copy.take_sample())
            pairs = list(zip(samples, timed_graphs, strict=True))
            for values, timed_graph in pairs if turn % 2 else reversed(pairs):
                values.append(timed_graph.take_sample())
            reasons = watch.find_reasons() if watch else ()
            turns_left = most - turn - 1
            if reasons and len(copies) - 1 + turns_left >= fewest:
                for values in (copies, *samples):
                    values.pop()
            else:
                throttle_reasons |= dict.fromkeys(reasons)
            if len(copies) >= fewest and all(map(is_sufficient, samples)):
                break
        return [
            JobOutcome(samples=tuple(values), copies=tuple(copies), throttle_reasons=tuple(throttle_reasons))
            for values in samples
        ]

    def _make_timed_graph(self, cycle: Cycle, stack: ExitStack) -> TimedGraph:
        make_graph = IsolatedLaunches if self._job.isolated else make_back_to_back
        timed_graph: TimedGraph = make_graph(cycle, stack)
        timed_graph.take_sample()  # the first replay uploads the graph to the device
        return timed_graph

    def run_oracle(self, oracle: Job) -> Bytes:
        """Launch the oracle's kernel on the job's buffers; return the kernel's outputs as the job's reference."""
        self.launch_on_all_sets(oracle)
        layout = buffers.lay_out_reference(self._job.arrays, is_verified=True)
        reference = np.full(layout.length, POISON, np.uint8)
        for array, start, length in layout.outputs:
            output = np.empty(array.nbytes, np.uint8)
            self.rotation.read_array(array, 0, 0, output)
            if array.ulp is not None:
                output = output.view(array.dtype).astype(np.float64).view(np.uint8)
            reference[start : start + length] = output
        return reference

    def launch_on_all_sets(self, job: Job) -> None:
        """Launch once on each set of buffers, with poisoned outputs."""
        self.rotation.poison_outputs(by_upload=not self.allows_waves)
        cycle = self.make_launches(job)

        def capture() -> None:
            for index in range(cycle.length):
                cycle.enqueue(index, cycle.stream)

        run_once(capture, cycle.stream)
