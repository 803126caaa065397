"""The base class of every benchmark that is timed on a GPU: protocol, skipping, and asking the measuring process.

asv's processes do not use CUDA. Each asks the run's measuring process for the samples of its configuration, and that
process verifies the output before it returns them. asv's loop then reads the samples.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from kernelwatch import settings, suite
from kernelwatch.asv.plans import plan
from kernelwatch.asv.plans.times import times
from kernelwatch.asv.sweep import Sweep
from kernelwatch.instrument import device, exchange, jobs, messages, paired_samples, prebuild, sampling
from kernelwatch.instrument.clock import Readings
from kernelwatch.instrument.job import Outcome
from kernelwatch.kernel import Launch

#: Samples of what is no benchmark, such as an experiment's launch.
SAMPLES = 10


class Timed(prebuild.BeforeFork):
    """Seconds a launch, read on the GPU. Made from a sweep, which says what each configuration launches."""

    version = "3"

    # asv's protocol: a sample is one call, and one replay; two rounds, so that their spread counts. Nothing warms up
    # here: the measuring process does, and it says how many samples there are.
    number = 1
    rounds = 2
    repeat = sampling.FEWEST
    warmup_time = 0.0
    timeout = 2 * (exchange.LIMIT + exchange.BEGIN)

    sweep: ClassVar[Sweep]
    params: ClassVar[list[list[Any]]]
    param_names: ClassVar[list[str]]

    def __init__(self) -> None:
        super().__init__()
        jobs.package()  # once, before the fork
        self.timer = Readings()

    def setup_cache(self) -> str:
        """Compile and plan everything once; return the folder that lives as long as this run of asv."""
        prebuild.for_device()
        address = os.environ.get(exchange.ADDRESS)
        if address is not None:
            times(CLASSES, address, Path())
        return str(Path.cwd())

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, run_folder: str, *params: Any) -> None:
        """Have the configuration measured, unless samples are left. asv calls it before every sample."""
        if self.timer.is_used_up:
            outcome = plan.take(Path(run_folder), type(self).__name__, params) or self.measured(params)
            paired_samples.note(
                Path(run_folder), type(self).__name__, params, zip(outcome.samples, outcome.copies, strict=True)
            )
            for reason in outcome.held_back:
                messages.held_back(reason, params)
            messages.spent(outcome.seconds)
            self.timer.add(outcome.samples)
            self.repeat = len(outcome.samples)
        self.timer.reset()

    def measured(self, params: tuple[Any, ...]) -> Outcome:
        """Return the measuring process's outcome for a configuration. Raises as `measured`."""
        return ask(self.described(dict(zip(self.param_names, params, strict=True))))

    @classmethod
    def described(cls, params: Mapping[str, Any]) -> jobs.Description:
        """Return a configuration's description for the measuring process. Raises as `jobs.of`."""
        sweep = cls.sweep
        how = {"samples": sampling.FEWEST, "most": sampling.MOST, "in_l2": sweep.in_l2, "isolated": sweep.isolated}
        return jobs.of(sweep.launch(params), **how)


def measured(launch: Launch, **how: Any) -> Outcome:
    """Have the run's measuring process measure a launch.

    Parameters
    ----------
    launch : Launch
        Of a kernel of the installed commit, or of the instrument's copy.
    **how
        Fields of Job that say how.

    Raises
    ------
    NotImplementedError
        The launch cannot be measured on this machine, or the installed commit lacks the kernel.
    WrongOutputError, MeasuringError
        As `exchange.ask`.
    """
    return ask(jobs.of(launch, **{"samples": SAMPLES, **how}))


def ask(what: jobs.Description) -> Outcome:
    """Have the run's measuring process measure what is described. Raises as `measured`."""
    address = os.environ.get(exchange.ADDRESS)
    if address is None:
        device.require()
        raise NotImplementedError("no measuring process: run asv with this repository's asv.conf.json")
    return exchange.ask(address, *what)


def _class(sweep: Sweep, method: str) -> type[Timed]:
    def time(self: Timed, *_: Any) -> None:
        """Do nothing: the sample has been taken, and `timer` returns it."""

    what = "time of one launch, isolated" if sweep.isolated else "time a launch, back to back"
    time.pretty_name = f"{sweep.title}: {what}"  # type: ignore[attr-defined]
    body = {
        "__module__": f"{settings.suite_folder()}.{sweep.module}",
        "__doc__": f"{sweep.title}.",
        "sweep": sweep,
        "params": [list(values) for values in sweep.axes.values()],
        "param_names": list(sweep.axes),
        method: time,
    }
    return type(sweep.name, (Timed,), body)


#: Benchmark -> its class.
CLASSES = {
    name: _class(sweep, name.rpartition(".")[2])
    for name, (kind, sweep) in suite.BENCHMARKS.items()
    if kind is suite.Kind.TIMED
}
if suite.DEVICE_COPY is not None:
    CLASSES[suite.time(suite.DEVICE_COPY)].version = "4"


def of_module(module: str) -> dict[str, type[Timed]]:
    """Return the classes that a module of `benchmarks` shows to asv, by name."""
    return {one.__name__: one for one in CLASSES.values() if one.__module__ == module}
