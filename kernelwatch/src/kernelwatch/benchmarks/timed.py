"""Benchmarks that are timed on a GPU, and their controls.

The runner asks the run's measuring process for the samples. Under plain asv, `setup` measures in asv's own process:
it builds, takes the samples with CUDA events and verifies the output; then `timer` hands over a sample at a time.

A control holds the same times as multiples of a plain copy of the same useful bytes, which is timed in turns with the
kernel. The ratio is meant to cancel what slows down everything, such as another GPU of the same kind or another day's
temperature. Lower is better; 1 is as fast as a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kernelwatch.benchmarks.base import Benchmark, measures
from kernelwatch.instrument import client, prebuild, stopping_rule
from kernelwatch.instrument.clock import Readings
from kernelwatch.instrument.protocol import Outcome
from kernelwatch.kernel import Launch
from kernelwatch.store import record
from kernelwatch.suite.sweep import Sweep

if TYPE_CHECKING:
    from kernelwatch.instrument import build_job

#: Digits of a ratio behind the point: two runs agree in three (docs/evidence/agreement.md); asv prints all there are.
DIGITS = 5


class Timed(Benchmark):
    """Seconds a launch, read on the GPU: `BackToBack` and `Isolated` are the two ways."""

    version = "3"

    # asv's protocol: a sample is one call, and one replay; two rounds, so that their spread counts. Nothing warms up
    # here: the instrument does, and it says how many samples there are.
    number = 1
    rounds = 2
    repeat = stopping_rule.FEWEST
    warmup_time = 0.0
    timeout = 2 * (client.LIMIT + client.BEGIN)

    in_l2: ClassVar[bool] = False
    isolated: ClassVar[bool] = False
    l2_fetch_bytes: ClassVar[int] = 0

    def __init__(self) -> None:
        self.timer = Readings()

    def setup_cache(self) -> None:
        """Compile everything that is timed, in parallel."""
        prebuild.for_device()

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, *params: Any) -> None:
        """Take and verify the samples of a configuration, unless some are left. asv calls it before every sample."""
        if self.timer.is_used_up:
            samples = _outcome(self.sweep, self.point(params)).samples
            self.timer.add(samples)
            self.repeat = len(samples)
        self.timer.reset()


class BackToBack(Timed):
    """Seconds of each launch in a row of many."""

    @measures("time a launch, back to back")
    def time_back_to_back(self, *params: Any) -> None:
        """Do nothing: `setup` has launched, and `timer` returns what the GPU's events read."""


class Isolated(Timed):
    """Seconds of a launch by itself."""

    isolated = True

    @measures("time of one launch, isolated")
    def time_isolated(self, *params: Any) -> None:
        """Do nothing: `setup` has launched, and `timer` returns what the GPU's timer read."""


class Control(Benchmark):
    """The control of a timed benchmark: a subclass names the class in `timed`."""

    module = record.CONTROL
    version = "3"
    timeout = Timed.timeout
    timed: ClassVar[type[Timed]]

    def __init_subclass__(cls) -> None:
        """Take the axes of what it is the control of."""
        cls.params, cls.param_names = cls.timed.params, cls.timed.param_names
        cls.title = f"{cls.timed.title}, isolated" if cls.timed.isolated else cls.timed.title
        super().__init_subclass__()

    setup_cache = Timed.setup_cache

    @classmethod
    def made_sweep(cls) -> Sweep:
        """Return the launches of what it is the control of."""
        return cls.timed.sweep

    def setup(self, *params: Any) -> None:
        """Time the launch and the copy in turns."""
        self.ratios = ratios(_outcome(self.sweep, self.point(params)))

    @measures("time in copies of the same bytes", "copies")
    def track_copy_ratio(self, *params: Any) -> dict[str, Any]:
        """Return each sample over the copy just before."""
        return {"samples": self.ratios, "number": 1}


def ratios(*outcomes: Outcome) -> list[float]:
    """Return the samples of some measurements, each over the copy just before."""
    pairs = (pair for each in outcomes for pair in zip(each.samples, each.copies, strict=True))
    return [round(seconds / copy, DIGITS) for seconds, copy in pairs]


def _outcome(sweep: Sweep, params: Mapping[str, Any]) -> Outcome:
    """Measure in this process, as plain asv's have to."""
    from kernelwatch.instrument import session  # noqa: PLC0415 -- who counts and compiles does without

    return session.outcome(described(sweep, sweep.launch(params)))


def described(sweep: Sweep, launch: Launch) -> build_job.Description:
    """Return the description of a sweep's launch for the measuring process. Raises as `jobs.of`."""
    from kernelwatch.instrument import build_job  # noqa: PLC0415 -- as above

    how: dict[str, Any] = {
        "samples": stopping_rule.FEWEST,
        "most": stopping_rule.MOST,
        "in_l2": sweep.in_l2,
        "isolated": sweep.isolated,
    }
    how |= {"l2_fetch_bytes": sweep.l2_fetch_bytes} if sweep.l2_fetch_bytes else {}
    return build_job.of(launch, **how)
