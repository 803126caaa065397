"""Memory transactions of the kernels, counted by executing their PTX: exact, on any machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from kernelwatch import settings, suite
from kernelwatch.asv.plans.counts import counts
from kernelwatch.asv.sweep import Sweep
from kernelwatch.counting import transactions
from kernelwatch.counting.metrics import METRICS
from kernelwatch.counting.transactions import CountOutcome
from kernelwatch.instrument import prebuild, skips


class _Counted:
    """What one launch does to memory. Made from a sweep."""

    version = "1"
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
        sweeps = {f"track_counted.{name}": one.sweep for name, one in CLASSES.items()}
        return counts(sweeps, self.version, Path())

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, cache: dict[str, CountOutcome], *params: Any) -> None:
        """Skip if the commit lacks the kernel; fail if its output is wrong."""
        outcome = self.outcome(cache, *params)
        if outcome.missing:
            raise NotImplementedError(skips.because(outcome.missing))
        if outcome.failure:
            raise RuntimeError(outcome.failure)


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
