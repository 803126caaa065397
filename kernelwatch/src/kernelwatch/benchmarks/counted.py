"""Benchmarks that count memory transactions by executing PTX. The counts are exact, on any machine."""

from __future__ import annotations

import multiprocessing
from collections import ChainMap, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from kernelwatch.benchmarks.base import Benchmark, measures
from kernelwatch.instrument import prebuild
from kernelwatch.kernel import Launch
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import COUNTED_MODULE
from kernelwatch.suite.metrics import METRICS, Metric

if TYPE_CHECKING:
    from kernelwatch.counting.launch_counts import CountOutcome

T = TypeVar("T")


class Counted(Benchmark):
    """Memory transactions of one launch, with a `track_` method for each metric of METRICS that is not `shared`."""

    module = COUNTED_MODULE
    version = "1"
    timeout = 120.0
    shared: ClassVar[bool] = False

    def setup_cache(self) -> dict[str, CountOutcome]:
        """Count every launch of the suite once, in parallel; asv passes the result to all classes."""
        from kernelwatch.counting import launch_counts  # noqa: PLC0415 -- imports everything that executes PTX

        sweeps = registry.current_suite().counted
        launches = (sweep.launch(point) for sweep in sweeps for point in sweep.points())
        with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
            return map_groups(pool, launch_counts.count_launches, launches)

    setup_cache.timeout = prebuild.TIMEOUT  # type: ignore[attr-defined]

    def setup(self, outcomes: dict[str, CountOutcome], *params: Any) -> None:
        """Look up a configuration's numbers. Skip it if the commit lacks the kernel; fail if counting it failed."""
        outcome = outcomes[str(self.sweep.launch(self.name_params(params)))]
        if outcome.missing:
            raise NotImplementedError(outcome.missing)
        if outcome.failure:
            raise RuntimeError(outcome.failure)
        self.metrics = outcome.metrics

    @classmethod
    def format_title(cls, method: Any) -> str:
        """Return the title of a method's numbers, which asv's pages show."""
        return f"{cls.title}, counted: {method._title}"


class CountedWithShared(Counted):
    """Memory transactions of a kernel that uses shared memory. The class also has shared memory's metrics."""

    shared = True


def _make_track_method(name: str, metric: Metric) -> Any:

    @measures(metric.title, metric.unit)
    def track(self: Counted, *params: Any) -> float:
        return self.metrics[name]

    return track


for _name, _metric in METRICS.items():
    setattr(CountedWithShared if _metric.shared else Counted, f"track_{_name}", _make_track_method(_name, _metric))


def map_groups(
    pool: ProcessPoolExecutor, function: Callable[[Sequence[Launch]], dict[str, T]], launches: Iterable[Launch]
) -> dict[str, T]:
    """Apply a function to launches in parallel, one call per kernel and dtype; return its joined results."""
    groups: defaultdict[tuple[str, str], list[Launch]] = defaultdict(list)
    for launch in launches:
        groups[launch.kernel, launch.dtype].append(launch)
    return dict(ChainMap(*pool.map(function, groups.values())))
