"""Benchmarks whose memory transactions are counted, by executing their PTX: exact, on any machine."""

from __future__ import annotations

import multiprocessing
from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from kernelwatch.benchmarks.base import Benchmark, measures
from kernelwatch.instrument import prebuild, skip_reasons
from kernelwatch.kernel import Launch
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import COUNTED_MODULE
from kernelwatch.suite.metrics import METRICS, Metric

if TYPE_CHECKING:
    from kernelwatch.counting.transactions import CountOutcome

T = TypeVar("T")


class Counted(Benchmark):
    """What one launch does to global memory: a `track_` method for each row of METRICS."""

    module = COUNTED_MODULE
    version = "1"
    timeout = 120.0
    shared: ClassVar[bool] = False

    def setup_cache(self) -> dict[str, CountOutcome]:
        """Count every launch of the suite once, in parallel; asv shares the result among the classes."""
        return outcomes(sweep.launch(point) for sweep in registry.current().counted for point in sweep.points())

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, counted: dict[str, CountOutcome], *params: Any) -> None:
        """Find a configuration's numbers; skip if the commit lacks the kernel, fail if its output is wrong."""
        outcome = counted[str(self.sweep.launch(self.point(params)))]
        if outcome.missing:
            raise NotImplementedError(skip_reasons.because(outcome.missing))
        if outcome.failure:
            raise RuntimeError(outcome.failure)
        self.metrics = outcome.metrics

    @classmethod
    def pretty(cls, method: Any) -> str:
        """Return what a person calls the numbers of a method."""
        return f"{cls.title}, counted: {method._what}"


class CountedWithShared(Counted):
    """The same of kernels that use shared memory, which has a metric of its own."""

    shared = True


def _tracked(name: str, metric: Metric) -> Any:
    """Return the method that reports a metric."""

    @measures(metric.title, metric.unit)
    def track(self: Counted, *params: Any) -> float:
        return self.metrics[name]

    return track


for _name, _metric in METRICS.items():
    setattr(CountedWithShared if _metric.shared else Counted, f"track_{_name}", _tracked(_name, _metric))


def outcomes(launches: Iterable[Launch]) -> dict[str, CountOutcome]:
    """Count launches in parallel; return what became of each by its text."""
    from kernelwatch.counting import transactions  # noqa: PLC0415 -- with all that executes PTX

    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        return in_groups(pool, transactions.outcomes, launches)


def in_groups(
    pool: ProcessPoolExecutor, function: Callable[[Sequence[Launch]], dict[str, T]], launches: Iterable[Launch]
) -> dict[str, T]:
    """Apply a function to launches by texts, in processes that each have what shares its PTX."""
    groups: defaultdict[tuple[str, str], list[Launch]] = defaultdict(list)
    for launch in launches:
        groups[launch.kernel, launch.dtype].append(launch)
    return dict(ChainMap(*pool.map(function, groups.values())))
