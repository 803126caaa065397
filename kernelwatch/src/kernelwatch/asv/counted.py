"""Memory transactions of the kernels, counted by executing their PTX: exact, on any machine."""

from __future__ import annotations

import multiprocessing
from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from kernelwatch import settings, suite
from kernelwatch.asv import background
from kernelwatch.asv.plans import plan as plans
from kernelwatch.asv.plans.plan import Check, Configuration, Plan
from kernelwatch.asv.sweep import Sweep
from kernelwatch.counting import transactions
from kernelwatch.counting.metrics import METRICS
from kernelwatch.counting.transactions import CountOutcome
from kernelwatch.instrument import fingerprint, prebuild, skips
from kernelwatch.kernel import Launch

T = TypeVar("T")

#: A launch, and its class: launches of a class and a dtype have PTX in common.
_Named = tuple[str, Launch]

VERSION = "1"


def everything(folder: Path) -> dict[str, CountOutcome]:
    """Count every launch of every sweep, in parallel; the plan goes into a folder."""
    sweeps = {f"track_counted.{sweep.name}": sweep for sweep in suite.current().counted}
    return counts(sweeps, VERSION, folder)


class _Counted:
    """What one launch does to memory. Made from a sweep."""

    version = VERSION
    timeout = 120.0
    sweep: ClassVar[Sweep]
    params: ClassVar[list[list[Any]]]
    param_names: ClassVar[list[str]]

    def outcome(self, cache: dict[str, CountOutcome], *params: Any) -> CountOutcome:
        """Return what becomes of a configuration; `setup_cache` has executed it, unless its numbers are stored."""
        launch = self.sweep.launch(dict(zip(self.param_names, params, strict=True)))
        return cache[str(launch)] if str(launch) in cache else transactions.outcomes([launch])[str(launch)]

    def setup_cache(self) -> dict[str, CountOutcome]:
        """Count every launch of every sweep once, in parallel; asv shares the result among them."""
        return background.done("counted", everything)

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, cache: dict[str, CountOutcome], *params: Any) -> None:
        """Skip if the commit lacks the kernel; fail if its output is wrong."""
        outcome = self.outcome(cache, *params)
        if outcome.missing:
            raise NotImplementedError(skips.because(outcome.missing))
        if outcome.failure:
            raise RuntimeError(outcome.failure)


def counts(sweeps: Mapping[str, Sweep], version: str, folder: Path) -> dict[str, CountOutcome]:
    """Plan the counted numbers that a run asks for. Compile and execute what is not reused, in parallel.

    Parameters
    ----------
    sweeps : mapping
        Class, with its module -> its sweep.
    version : str
        Of the benchmarks.
    folder : Path
        Where the plan goes.

    Returns
    -------
    dict
        The text of each launch that was executed -> what became of it.
    """
    launches = {name: [sweep.launch(point) for point in sweep.points()] for name, sweep in sweeps.items()}
    known = plans.stored()
    asked = {name: [place for place in range(len(each)) if known.asks(name, place)] for name, each in launches.items()}
    wanted = [(name, launches[name][place]) for name, places in asked.items() for place in places]
    done: dict[str, CountOutcome] = {}
    fingerprint.counter()  # once, before the fork, and not in each process
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:

        def apply(function: Callable[[Sequence[Launch]], dict[str, T]], named: Iterable[_Named]) -> dict[str, T]:
            groups: defaultdict[tuple[str, str], list[Launch]] = defaultdict(list)
            for name, launch in named:
                groups[name, launch.dtype].append(launch)
            return dict(ChainMap(*pool.map(function, groups.values())))

        def measure(checks: Sequence[Check]) -> list[float | None]:
            again = [(check.name, launches[check.name][check.place]) for check in checks]
            done.update(apply(transactions.outcomes, again))
            now = (_of(name, sweeps[name], done[str(launch)].metrics) for name, launch in again)
            return [_ratio(numbers, check.entry.values) for numbers, check in zip(now, checks, strict=True)]

        found = apply(transactions.fingerprints, wanted)
        versioned = {text: f"{each}-{version}" for text, each in found.items() if each}
        plan = Plan(
            {name: [Configuration(plans.text(point)) for point in each.points()] for name, each in sweeps.items()}
        )
        ones = [plan.configurations[name][place] for name, places in asked.items() for place in places]
        for (_, launch), one in zip(wanted, ones, strict=True):
            one.fingerprint = versioned.get(str(launch), "")
        plans.decide(plan, known, measure, lambda _, values: {one: [value] for one, value in values.items()})
        rest = [(*named, one) for named, one in zip(wanted, ones, strict=True) if not one.answers]
        done.update(apply(transactions.outcomes, [(name, each) for name, each, _ in rest if str(each) not in done]))
    for name, launch, one in rest:
        outcome = done[str(launch)]
        one.skipped = skips.because(outcome.missing) if outcome.missing else ""
        one.answers = {metric: [value] for metric, value in _of(name, sweeps[name], outcome.metrics).items()}
    plan.write(folder)
    return done


def _ratio(now: Mapping[str, float], before: Mapping[str, float]) -> float | None:
    """Return the number that differs most over what is stored; 1 if all are equal, None if one is missing."""
    if now.keys() != before.keys():
        return None
    ratios = [now[name] / before[name] if before[name] else 1.0 + now[name] for name in now]
    return max(ratios, key=lambda ratio: abs(ratio - 1), default=1.0)


def _of(name: str, sweep: Sweep, metrics: Mapping[str, float]) -> dict[str, Any]:
    """Return the numbers of a class by benchmark."""
    return {f"{name}.track_{metric}": metrics[metric] for metric in suite.metrics(sweep) if metric in metrics}


def _metric(name: str, sweep: Sweep) -> Any:
    """Return the benchmark that reports one metric."""

    def track(self: _Counted, cache: dict[str, CountOutcome], *params: Any) -> float:
        return self.outcome(cache, *params).metrics[name]

    track.unit = METRICS[name].unit  # type: ignore[attr-defined]
    track.pretty_name = f"{sweep.title}, counted: {METRICS[name].title}"  # type: ignore[attr-defined]
    track.benchmark_name = f"track_counted.{sweep.name}.track_{name}"  # type: ignore[attr-defined]
    return track


def _class(sweep: Sweep) -> type[_Counted]:
    body = {
        "__module__": f"{settings.suite_folder()}.track_counted",
        "__doc__": f"{sweep.title}, counted.",
        "sweep": sweep,
        "params": [list(values) for values in sweep.axes.values()],
        "param_names": list(sweep.axes),
    }
    methods = {f"track_{name}": _metric(name, sweep) for name in suite.metrics(sweep)}
    return type(sweep.name, (_Counted,), body | methods)


#: Those that were made last.
CLASSES: dict[str, type[_Counted]] = {}


def classes() -> dict[str, type[_Counted]]:
    """Return the classes of the suite by name."""
    CLASSES.clear()
    CLASSES.update({sweep.name: _class(sweep) for sweep in suite.current().counted})
    return CLASSES
