"""The benchmarks that are timed on a GPU: protocol, skipping, asking the measuring process; and their controls.

asv's processes do not use CUDA. The commit's agent has the run's measuring process take the samples of a configuration,
and that process verifies the output before it returns them. The run asks the agent itself. Where it does not, without
the plugin for example, a process of asv's asks, and asv's loop reads the samples.

A control holds the same times as multiples of a plain copy of the same useful bytes, which is timed in turns with the
kernel. The ratio is meant to cancel what slows down everything, such as another GPU of the same kind or another day's
temperature. Lower is better; 1 is as fast as a copy. If asv interleaves the rounds of several commits, the ratio has
the last round's samples only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from kernelwatch import mortal, project, settings, suite
from kernelwatch.asv import background, compiled, counted
from kernelwatch.asv.sweep import Sweep
from kernelwatch.instrument import device, exchange, jobs, prebuild, sampling
from kernelwatch.instrument.clock import Readings
from kernelwatch.instrument.job import Outcome
from kernelwatch.kernel import Launch

#: Digits of a ratio behind the point: two runs agree in three (docs/evidence/agreement.md); asv prints all there are.
DIGITS = 5

#: What to do without the plugin, and what it brings.
MISSING = (
    'write "plugins": [".kernelwatch.asv.plugin", ".kernelwatch.show.site.publisher"] into asv.conf.json: times then '
    "take less long, unchanged numbers are reused, the machine is named after its GPU, and the site has all pages"
)

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
    benchmark: ClassVar[str]
    points: ClassVar[list[dict[str, Any]]]  # the parameters of each configuration, in asv's order

    def __init__(self) -> None:
        super().__init__()
        jobs.package()  # once, before the fork
        self.timer = Readings()

    def setup_cache(self) -> str:
        """Compile what is timed and begin the commit's agent; return the folder that lives as long as this run of asv.

        What the other benchmarks need is compiled and counted at once, while the GPU measures.
        """
        from kernelwatch.asv import agent  # noqa: PLC0415 -- it asks for what is here

        prebuild.for_device()
        if mortal.RUN in os.environ:
            background.ahead("compiled", compiled.everything)
            background.ahead("counted", counted.everything)
        agent.begin(Path.cwd())
        return str(Path.cwd())

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, run_folder: str, *params: Any) -> None:
        """Take the samples of the configuration, unless some are left. asv calls it before every sample."""
        if self.timer.is_used_up:
            samples = _answered(self.benchmark, self, run_folder, params)
            self.timer.add(samples)
            self.repeat = len(samples)
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


def ask(what: jobs.Description, write: Callable[[exchange.Reference], int] | None = None) -> Outcome:
    """Have the run's measuring process measure what is described; `write` as of `exchange.ask`.

    Raises as `measured`.
    """
    return exchange.ask(os.environ.get(exchange.ADDRESS) or _no_process(), *what, write)


def _no_process() -> NoReturn:
    device.require()
    raise NotImplementedError(f"no measuring process; {MISSING}")


def _answered(benchmark: str, one: Any, folder: str, params: tuple[Any, ...]) -> list[float]:
    """Return what the agent of a folder says of a configuration. Raises as `measured`."""
    from kernelwatch.asv import agent  # noqa: PLC0415 -- as above

    place = next(place for place, each in enumerate(one.points) if tuple(each.values()) == params)
    if project.LIBRARIES not in os.environ:  # else the plugin is there, and has said what of it is switched off
        with suppress(FileExistsError):
            (Path(folder) / "told").touch(exist_ok=False)
            print(f"kernelwatch runs without its plugin; {MISSING}", file=sys.stderr)
    answer = agent.ask(Path(folder), benchmark, place)
    if answer is None:
        device.require()
        raise exchange.MeasuringError(f"the agent of this commit is gone; {Path(folder) / agent.LOG} may say why")
    print(answer.said, end="", file=sys.stderr)
    if answer.skipped:
        raise NotImplementedError(answer.skipped)
    if answer.failed:
        raise exchange.MeasuringError(answer.failed)
    return answer.samples


class _Control:
    """The control of a timed benchmark."""

    version = "3"
    timeout = Timed.timeout
    timed: ClassVar[type[Timed]]
    benchmark: ClassVar[str]

    # The very function of the timed benchmarks: asv then gives both the same folder.
    setup_cache = Timed.setup_cache

    def setup(self, run_folder: str, *params: Any) -> None:
        """Ask for a configuration's samples in units of the copies before them, which are taken if none were."""
        self.ratios = _answered(self.benchmark, self.timed, run_folder, params)


def _class(sweep: Sweep, method: str) -> type[Timed]:
    def time(self: Timed, *_: Any) -> None:
        """Do nothing: the sample has been taken, and `timer` returns it."""

    what = "time of one launch, isolated" if sweep.isolated else "time a launch, back to back"
    time.pretty_name = f"{sweep.title}: {what}"  # type: ignore[attr-defined]
    time.benchmark_name = f"{sweep.module}.{sweep.name}.{method}"  # type: ignore[attr-defined]
    body = {
        "__module__": f"{settings.suite_folder()}.{sweep.module}",
        "__doc__": f"{sweep.title}.",
        "benchmark": time.benchmark_name,  # type: ignore[attr-defined]
        "sweep": sweep,
        "params": [list(values) for values in sweep.axes.values()],
        "param_names": list(sweep.axes),
        "points": list(sweep.points()),
        method: time,
    }
    return type(sweep.name, (Timed,), body)


def _control(timed: type[Timed], benchmark: str) -> type[_Control]:
    def track(self: _Control, *_: Any) -> dict[str, Any]:
        """Report the ratios."""
        return {"samples": self.ratios, "number": 1}

    title = f"{timed.sweep.title}, isolated" if timed.sweep.isolated else timed.sweep.title
    track.unit = "copies"  # type: ignore[attr-defined]
    track.pretty_name = f"{title}: time in copies of the same bytes"  # type: ignore[attr-defined]
    track.benchmark_name = benchmark  # type: ignore[attr-defined]
    body = {
        "__module__": f"{settings.suite_folder()}.track_control",
        "__doc__": f"{title}, in copies.",
        "timed": timed,
        "benchmark": benchmark,
        "params": timed.params,
        "param_names": timed.param_names,
        benchmark.rpartition(".")[2]: track,
    }
    return type(timed.__name__, (_Control,), body)


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
