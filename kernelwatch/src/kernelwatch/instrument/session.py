"""Measure jobs on the device: fill buffers, take samples with a copy before each, then verify the output once.

A grid of many waves changes the times of later small launches in the same context, by up to 9 %
(docs/evidence/times.md, "Contexts remember"). Therefore launches whose blocks all run at once are measured in a
separate context, unless they are isolated. Jobs interleaved with such a launch, and jobs with an L2 fetch granularity,
have a separate context, too. Besides the jobs' own launches, verification in this context uses only uploads and
launches whose blocks all run at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from kernelwatch.instrument import buffers, build_job, check_output, client, device, helper_kernels, memory, throttling
from kernelwatch.instrument.device import fits_in_one_wave
from kernelwatch.instrument.inputs import Bytes
from kernelwatch.instrument.job_messages import DeviceFacts, Job, JobOutcome
from kernelwatch.instrument.memory import FetchReference
from kernelwatch.instrument.timed_job import TimedJob
from kernelwatch.kernel import Launch

#: Number of samples of a launch that is not a benchmark, such as one of an experiment.
DEFAULT_SAMPLES = 10


def measure_launch(launch: Launch, **job_fields: Any) -> JobOutcome:
    """Measure a launch of a kernel of the installed commit, or of the library's copy kernel.

    `job_fields` are fields of `Job`. Raises the exceptions of `describe_launch` and of `measure_description`.
    """
    return measure_description(build_job.describe_launch(launch, **{"samples": DEFAULT_SAMPLES, **job_fields}))


def measure_description(description: build_job.JobDescription) -> JobOutcome:
    """Measure a described launch, in the run's measuring process if there is one, else here.

    The output is verified. Without a reference, only writes past its end and to inputs are detected.

    Raises
    ------
    NotImplementedError
        The launch cannot be measured on this machine.
    WrongOutputError
        The output is wrong, or the kernel wrote to an input or past the end of an array.
    MeasuringError
        The measuring process did not start, stopped, or failed to measure.
    NvccNotFoundError, CompileError, ArgumentError
        The kernel cannot be compiled, or an argument or a function of the project is wrong.
    """
    address = os.environ.get(client.ADDRESS)
    if address:
        return client.request_outcome(address, *description)
    session, facts = _process_session()
    job = description.make_job(facts)
    (outcome,) = session.measure([job], lambda _length: memory.make_reader(description.reference.content()))
    return outcome


@cache
def _process_session() -> tuple[Session, DeviceFacts]:
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # the order of NVML, which watches the clocks
    return Session(throttling.watch_gpu()), device.describe_device()


@dataclass
class _LastJobs:
    """The last jobs, and their context and buffers, which the next job may share."""

    #: True for a separate context, as the module's docstring explains.
    in_separate_context: bool
    jobs: list[Job] = field(default_factory=list)
    use_context: Callable[[], AbstractContextManager[None]] = nullcontext
    timed_job: TimedJob | None = None
    #: Stacks that free the context and the buffers.
    context_stack: ExitStack = field(default_factory=ExitStack)
    buffer_stack: ExitStack = field(default_factory=ExitStack)

    def can_serve(self, job: Job, *, in_separate_context: bool) -> bool:
        # A repeated job gets new buffers, so that its rounds are independent.
        has_same_context = self.in_separate_context == in_separate_context
        return has_same_context and job not in self.jobs and self.jobs[0].shares_buffers(job)


class Session:
    """Measures jobs one after another; `watch` reports whether the GPU is throttled or shared.

    Raises NotImplementedError without a usable device.
    """

    def __init__(self, watch: throttling.ThrottleWatch | None = None) -> None:
        device.process_context()
        self._watch = watch
        self._clean_context: Any = None
        self._last: _LastJobs | None = None
        #: Jobs with a verified output. Later rounds are not verified: their machine code and contents are the same.
        self._verified: set[Job] = set()
        free, _total = device.cuda.mem_get_info()
        self.references = memory.ReferenceStore(free // 2)
        self._arena = memory.Arena()

    @staticmethod
    def has_room(job: Job) -> bool:
        """Return whether one set of a job's buffers fits in the device's memory; several sets may not fit."""
        _free, total = device.cuda.mem_get_info()
        return job.set_bytes <= int(total)

    def needs_reference(self, job: Job) -> bool:
        """Return whether a job must still be verified, or begins with contents that the commit's process writes."""
        return job not in self._verified or any(array.is_prefilled for array in job.arrays)

    def measure(self, jobs: Sequence[Job], fetch: FetchReference) -> list[JobOutcome]:
        """Time jobs that share buffers, interleaved. Verify the first job, unless an earlier round verified it.

        `fetch` requests the first job's reference.

        Raises
        ------
        NotImplementedError
            The buffers do not fit in the device's memory, or in its L2 cache if the data must stay there.
        WrongOutputError
            An output differs from the reference, an input changed, or the kernel wrote past the end of an array.
        """
        fetch = cache(fetch)
        with self._prepare_buffers(jobs, fetch) as timed_job:
            outcomes = timed_job.take_samples(jobs, self._watch)
            if jobs[0] not in self._verified:
                self._verify(jobs[0], timed_job, fetch)
        return outcomes

    def verify(self, job: Job, fetch: FetchReference) -> None:
        """Verify a timed job, unless an earlier round verified it. Raises the exceptions of `measure`."""
        if job not in self._verified:
            fetch = cache(fetch)
            with self._prepare_buffers([job], fetch) as timed_job:
                self._verify(job, timed_job, fetch)

    @contextmanager
    def _prepare_buffers(self, jobs: Sequence[Job], fetch: FetchReference) -> Iterator[TimedJob]:
        """Make the context of jobs current, and yield buffers for the jobs: those of the last job if possible."""
        job = jobs[0]
        has_small_grid = any(map(fits_in_one_wave, jobs))
        in_separate = bool(job.l2_fetch_bytes) or (has_small_grid and not job.isolated)
        if job.in_l2 and job.set_bytes > device.l2_bytes():
            problem = f"needs {job.set_bytes} bytes of L2 cache, but the GPU has {device.l2_bytes()}"
            raise NotImplementedError(f"{problem}; use smaller arguments")
        last = self._last
        if last is None or not last.can_serve(job, in_separate_context=in_separate):
            self.release_buffers()
            last = self._last = _LastJobs(in_separate)
            if in_separate:
                last.use_context = self._choose_context(job, last.context_stack)
        last.jobs.append(job)
        can_reuse_buffers = False
        try:
            with last.use_context():
                last.timed_job = last.timed_job or self._make_buffers(job, last, fetch)
                yield last.timed_job
                last.timed_job.release_job()
            can_reuse_buffers = not last.timed_job.rotation.contents and job.oracle is None
        finally:
            if not can_reuse_buffers:
                self.release_buffers()

    def release_buffers(self) -> None:
        """Free the buffers of the last job."""
        last, self._last = self._last, None
        if last is not None:
            with last.use_context():
                last.buffer_stack.close()
            last.context_stack.close()

    def _choose_context(self, job: Job, stack: ExitStack) -> Callable[[], AbstractContextManager[None]]:
        """Return a function that makes a separate context current within a `with` block.

        Most jobs share the session's clean context, in which only interleaved jobs may launch large grids. A job gets a
        new context if its copy or its oracle needs large grids, or if it sets the L2 fetch granularity.
        """
        helper_calls = [helper_kernels.make_copy_call(job.useful_bytes // 2)]
        if job.oracle is not None:
            helper_calls.append(job.oracle)
        if not job.l2_fetch_bytes and all(map(fits_in_one_wave, helper_calls)):
            self._clean_context = self._clean_context or device.make_context()
            return partial(device.use_context, self._clean_context)
        context = device.make_context(job.l2_fetch_bytes or 0)
        stack.callback(context.detach)
        return partial(device.use_context, context)

    def _make_buffers(self, job: Job, last: _LastJobs, fetch: FetchReference) -> TimedJob:
        """Return a job's buffers. While they do not fit, free first the references on the device, then the arena."""
        layout = buffers.lay_out_reference(job.arrays, is_verified=job.is_verified)
        contents: dict[str, Bytes] = {}
        if layout.prefilled:
            reference_bytes = self.references.load_on_host(job.reference, layout.length, fetch)
            contents = {part.array.name: part.view_in(reference_bytes) for part in layout.prefilled}
        allocate = device.allocate if last.in_separate_context else self._arena.allocate
        allows_waves = not last.in_separate_context
        make_buffers = partial(TimedJob, job, last.buffer_stack, allocate, contents, allows_waves=allows_waves)
        for release in (self.references.release, self._arena.release):
            try:
                return make_buffers()
            except NotImplementedError:
                if not self.has_room(job):
                    raise  # releasing memory would not help
                release()
        return make_buffers()

    def _verify(self, job: Job, timed_job: TimedJob, fetch: FetchReference) -> None:
        """Launch a job once on each set, then check its inputs and outputs.

        Of outputs without a reference, and without an oracle (a kernel as reference), only the guards are checked.
        """
        expected: Callable[[], Bytes] | None = None
        on_device: Callable[[], int | None] | None = None
        if job.is_verified:
            length = buffers.lay_out_reference(job.arrays, is_verified=True).length
            reference_arguments = (job.reference, length, fetch)
            expected = partial(self.references.load_on_host, *reference_arguments)
            if timed_job.allows_waves:
                on_device = partial(self.references.load_on_device, *reference_arguments)
        elif job.oracle is not None:
            oracle_output = timed_job.run_oracle(job.oracle)
            expected = lambda: oracle_output  # noqa: E731
        timed_job.launch_on_all_sets(job)
        check_output.check_job_output(job, timed_job.rotation, expected, on_device)
        self._verified.add(job)
