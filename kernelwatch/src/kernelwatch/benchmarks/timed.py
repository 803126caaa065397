"""Benchmarks that are timed on a GPU, and their copy ratios: times divided by a copy's time.

The runner gets the samples from the run's measuring process. Without the runner, `setup` measures in asv's own process:
it compiles, takes the samples and verifies the output. Then `timer` returns one sample per pair of calls.

A copy ratio is a time divided by the time of a plain copy of the same bytes. Without the runner, `Control` takes its
own samples. The samples of kernel and copy are interleaved. The ratio cancels influences on all times, such as the
temperature. Lower is better; 1 is as fast as a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kernelwatch.benchmarks.base import Benchmark, measures
from kernelwatch.instrument import client, prebuild, stopping_rule
from kernelwatch.instrument.clock import SampleClock
from kernelwatch.instrument.job_messages import JobOutcome
from kernelwatch.kernel import Launch
from kernelwatch.suite.benchmark_names import COPY_RATIO_MODULE
from kernelwatch.suite.sweep import Sweep

if TYPE_CHECKING:
    from kernelwatch.instrument import build_job

#: Decimal places of a stored ratio. Two runs agree in three (docs/evidence/agreement.md); asv prints all of them.
DIGITS = 5


class Timed(Benchmark):
    """Seconds per launch, measured on the GPU, in one of two ways: `BackToBack` or `Isolated`."""

    version = "3"

    # Attributes of asv: a sample is one call, with one replay. Two rounds show the spread. The library warms up and
    # determines the number of samples itself.
    number = 1
    rounds = 2
    repeat = stopping_rule.MIN_SAMPLES
    warmup_time = 0.0
    timeout = 2 * (client.JOB_LIMIT + client.START_LIMIT)

    in_l2: ClassVar[bool] = False
    isolated: ClassVar[bool] = False
    l2_fetch_bytes: ClassVar[int] = 0

    def __init__(self) -> None:
        self.timer = SampleClock()

    def setup_cache(self) -> None:
        """Compile all timed kernels, in parallel."""
        prebuild.compile_for_device()

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, *params: Any) -> None:
        """Take and verify the samples of a configuration, unless some are left. asv calls this before every sample."""
        if self.timer.is_used_up:
            samples = _measure(self.sweep, self.name_params(params)).samples
            self.timer.add(samples)
            self.repeat = len(samples)
        self.timer.reset()


class BackToBack(Timed):
    """Seconds per launch in a sequence of many launches."""

    @measures("time per launch, back to back")
    def time_back_to_back(self, *params: Any) -> None:
        """Do nothing: `setup` has launched the kernel, and `timer` returns the times of the CUDA events."""


class Isolated(Timed):
    """Seconds of a launch that runs alone."""

    isolated = True

    @measures("time of one launch, isolated")
    def time_isolated(self, *params: Any) -> None:
        """Do nothing: `setup` has launched the kernel, and `timer` returns the times of the GPU's timer."""


class Control(Benchmark):
    """The copy ratios of a timed benchmark: a subclass names the benchmark's class in `timed`."""

    module = COPY_RATIO_MODULE
    version = "3"
    timeout = Timed.timeout
    timed: ClassVar[type[Timed]]

    def __init_subclass__(cls) -> None:
        """Take the axes and the title of the timed class."""
        cls.params, cls.param_names = cls.timed.params, cls.timed.param_names
        cls.title = f"{cls.timed.title}, isolated" if cls.timed.isolated else cls.timed.title
        super().__init_subclass__()

    setup_cache = Timed.setup_cache

    @classmethod
    def make_sweep(cls) -> Sweep:
        """Return the sweep of the timed class."""
        return cls.timed.sweep

    def setup(self, *params: Any) -> None:
        """Time the launch and the copy, with interleaved samples."""
        self.ratios = copy_ratios(_measure(self.sweep, self.name_params(params)))

    @measures("time in copies of the same bytes", "copies")
    def track_copy_ratio(self, *params: Any) -> dict[str, Any]:
        """Return each sample divided by the time of the copy before it."""
        return {"samples": self.ratios, "number": 1}


def copy_ratios(*outcomes: JobOutcome) -> list[float]:
    """Return each sample of the outcomes divided by the time of the copy before it, rounded to DIGITS places."""
    pairs = (pair for outcome in outcomes for pair in zip(outcome.samples, outcome.copies, strict=True))
    return [round(seconds / copy, DIGITS) for seconds, copy in pairs]


def _measure(sweep: Sweep, params: Mapping[str, Any]) -> JobOutcome:
    """Measure a configuration in asv's own process, without this project's runner."""
    from kernelwatch.instrument import session  # noqa: PLC0415 -- not needed for counting and compiling

    return session.measure_description(describe_job(sweep, sweep.launch(params)))


def describe_job(sweep: Sweep, launch: Launch) -> build_job.JobDescription:
    """Describe the job that times a launch under the conditions of its sweep.

    Raises the exceptions of `build_job.describe_launch`.
    """
    from kernelwatch.instrument import build_job  # noqa: PLC0415 -- as above

    job_fields: dict[str, Any] = {
        "samples": stopping_rule.MIN_SAMPLES,
        "most": stopping_rule.MAX_SAMPLES,
        "in_l2": sweep.in_l2,
        "isolated": sweep.isolated,
    }
    if sweep.l2_fetch_bytes:
        job_fields["l2_fetch_bytes"] = sweep.l2_fetch_bytes
    return build_job.describe_launch(launch, **job_fields)
