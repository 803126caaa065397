"""The benchmarks that are timed on a GPU: protocol, skipping, asking the measuring process; and their controls.

asv's processes do not use CUDA. Each asks the run's measuring process for the samples of its configuration, and that
process verifies the output before it returns them. asv's loop then reads the samples.

A control holds the same times as multiples of a plain copy of the same useful bytes, which is timed in turns with the
kernel. The ratio is meant to cancel what slows down everything, such as another GPU of the same kind or another day's
temperature. Lower is better; 1 is as fast as a copy. If asv interleaves the rounds of several commits, the ratio has
the last round's samples only.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from kernelwatch import settings, suite
from kernelwatch.asv.plans import plan
from kernelwatch.asv.plans.times import times
from kernelwatch.asv.sweep import Sweep
from kernelwatch.instrument import beside, device, exchange, jobs, messages, paired_samples, prebuild, sampling
from kernelwatch.instrument.clock import Readings
from kernelwatch.instrument.job import Outcome
from kernelwatch.kernel import Launch

#: Behind the decimal point of a ratio: two runs agree in three (docs/evidence/log.md), and asv prints all there are.
DIGITS = 5

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
        else:  # asv runs without the plugin
            beside.begin(Path.cwd(), os.getppid())
        return str(Path.cwd())

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, run_folder: str, *params: Any) -> None:
        """Have the configuration measured, unless samples are left. asv calls it before every sample."""
        if self.timer.is_used_up:
            beside.find(Path(run_folder))
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
        raise NotImplementedError(f"no measuring process; {beside.MISSING}")
    return exchange.ask(address, *what)


class _Control:
    """The control of a timed benchmark."""

    version = "3"
    timeout = Timed.timeout
    timed: ClassVar[type[Timed]]

    # The very function of the timed benchmarks: asv then gives both the same folder.
    setup_cache = Timed.setup_cache

    def setup(self, run_folder: str, *params: Any) -> None:
        """Take samples here if the timed benchmark was not run."""
        if not paired_samples.read(Path(run_folder), self.timed.__name__, params):
            self.timed().setup(run_folder, *params)


def _class(sweep: Sweep, method: str) -> type[Timed]:
    def time(self: Timed, *_: Any) -> None:
        """Do nothing: the sample has been taken, and `timer` returns it."""

    what = "time of one launch, isolated" if sweep.isolated else "time a launch, back to back"
    time.pretty_name = f"{sweep.title}: {what}"  # type: ignore[attr-defined]
    time.benchmark_name = f"{sweep.module}.{sweep.name}.{method}"  # type: ignore[attr-defined]
    body = {
        "__module__": f"{settings.suite_folder()}.{sweep.module}",
        "__doc__": f"{sweep.title}.",
        "sweep": sweep,
        "params": [list(values) for values in sweep.axes.values()],
        "param_names": list(sweep.axes),
        method: time,
    }
    return type(sweep.name, (Timed,), body)


def _control(timed: type[Timed], benchmark: str) -> type[_Control]:
    def track(self: _Control, run_folder: str, *params: Any) -> dict[str, Any]:
        """Report a configuration's samples in units of the copies before them."""
        return _ratios(self.timed.__name__, Path(run_folder), params)

    title = f"{timed.sweep.title}, isolated" if timed.sweep.isolated else timed.sweep.title
    track.unit = "copies"  # type: ignore[attr-defined]
    track.pretty_name = f"{title}: time in copies of the same bytes"  # type: ignore[attr-defined]
    track.benchmark_name = benchmark  # type: ignore[attr-defined]
    body = {
        "__module__": f"{settings.suite_folder()}.track_control",
        "__doc__": f"{title}, in copies.",
        "timed": timed,
        "params": timed.params,
        "param_names": timed.param_names,
        benchmark.rpartition(".")[2]: track,
    }
    return type(timed.__name__, (_Control,), body)


def _ratios(timed: str, folder: Path, params: Sequence[Any]) -> dict[str, Any]:
    found = paired_samples.read(folder, timed, params)
    paired_samples.forget(folder, timed, params)
    return {"samples": [round(sample.seconds / sample.copy_seconds, DIGITS) for sample in found], "number": 1}


def ratios(benchmark: str, place: int, folder: Path) -> dict[str, Any] | None:
    """Return what a process would report of a configuration that this run has timed; None if a process must be run.

    Parameters
    ----------
    benchmark : str
        Any.
    place : int
        The configuration's, in asv's order.
    folder : Path
        The working folder of the run's processes.
    """
    timed = CONTROLS[benchmark].timed if benchmark in CONTROLS else None
    found = _ratios(timed.__name__, folder, list(itertools.product(*timed.params))[place]) if timed else {}
    return found if found.get("samples") else None


#: Benchmark -> its class, of those that were made last: of times, and of their controls.
CLASSES: dict[str, type[Timed]] = {}
CONTROLS: dict[str, type[_Control]] = {}


def make() -> None:
    """Make the classes of the suite."""
    for each in (CLASSES, CONTROLS):
        each.clear()
    for name, (kind, sweep) in suite.current().benchmarks.items():
        if kind is suite.Kind.TIMED:
            CLASSES[name] = made = _class(sweep, name.rpartition(".")[2])
            if sweep is suite.current().copy:
                made.version = "4"
            else:
                CONTROLS[suite.control(name)] = _control(made, suite.control(name))


make()


def of_module(module: str) -> dict[str, type]:
    """Return the classes that a module of `benchmarks` shows to asv, by name."""
    return {one.__name__: one for one in (*CLASSES.values(), *CONTROLS.values()) if one.__module__ == module}
