"""From the words of METRIC to configurations of today's suite."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from kernelwatch.kernel import Launch
from kernelwatch.suite import registry
from kernelwatch.suite.registry import Kind
from kernelwatch.workflow.select_results import CannotCompareError


@dataclass(frozen=True)
class Configuration:
    """One number of the suite: asv's name of the benchmark, its kind, and the parameters as they are stored."""

    benchmark: str
    kind: Kind
    params: Mapping[str, str]

    @property
    def name(self) -> str:
        """Benchmark and parameters, as the review prints them."""
        return f"{self.benchmark}({', '.join(self.params.values())})"

    @property
    def launch(self) -> Launch:
        """What it launches."""
        found = registry.find_launch(self.benchmark, self.params)
        assert found is not None, "it is one of the suite's"
        return found

    @cached_property
    def words(self) -> frozenset[str]:
        """What METRIC may call it."""
        _, group, number = self.benchmark.split(".")
        metric = "time" if self.kind is Kind.TIMED else number.removeprefix("track_")
        return frozenset([self.kind.value, metric, group, *_words(self.name), *str(self.launch).split()])


def _words(text: str) -> list[str]:
    return re.sub(r"[(),]", " ", text).split()


@cache
def configurations() -> tuple[Configuration, ...]:
    """Return every number that the suite measures, without the copies beside times."""
    return tuple(
        Configuration(benchmark, kind, {name: str(value) for name, value in point.items()})
        for benchmark, (kind, sweep) in registry.current_suite().benchmarks.items()
        if kind is not Kind.CONTROL
        for point in sweep.points()
    )


def matching(metric: str) -> list[Configuration]:
    """Return the configurations that have all words of METRIC.

    Raises CannotCompareError where there is none; the message names the words that are nearest.
    """
    words = _words(metric)
    found = [each for each in configurations() if each.words.issuperset(words)]
    if words and found:
        return [each for each in found if each.name == metric] or found
    known = frozenset().union(*(each.words for each in configurations()))
    unknown = [word for word in words if word not in known]
    near = [each for word in unknown for each in difflib.get_close_matches(word, sorted(known))]
    raise CannotCompareError(
        f"no configuration has all words of METRIC, {metric!r}; "
        + f"{', '.join(map(repr, unknown))} is in none: did you mean {' or '.join(near) or 'another'}? " * bool(unknown)
        + "give words of one as the review prints it, such as 'load_sectors transpose float32 -Xptxas -O3'"
    )
