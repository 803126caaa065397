"""From the words of METRIC to configurations of today's suite."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from kernelwatch import suite
from kernelwatch.kernel import Launch
from kernelwatch.review.commits import CannotCompareError
from kernelwatch.suite import Kind


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
    def metric(self) -> str:
        """The number's own name: "load_sectors", "registers", "time"."""
        return "time" if self.kind is Kind.TIMED else self.benchmark.rpartition(".track_")[2]

    @property
    def launch(self) -> Launch:
        """What it launches."""
        found = suite.launch(self.benchmark, self.params)
        assert found is not None, "it is one of the suite's"
        return found

    @cached_property
    def words(self) -> frozenset[str]:
        """What METRIC may call it."""
        texts = [self.kind.value, self.metric, self.metric.replace("_", " "), self.benchmark]
        texts += [self.benchmark.replace(".", " "), *self.params.values(), str(self.launch)]
        return frozenset(" ".join(texts).split())


@cache
def configurations() -> tuple[Configuration, ...]:
    """Return every number that the suite measures, without the copies beside times."""
    return tuple(
        Configuration(benchmark, kind, {name: str(value) for name, value in point.items()})
        for benchmark, (kind, sweep) in suite.current().benchmarks.items()
        if kind is not Kind.CONTROL
        for point in sweep.points()
    )


def matching(metric: str) -> list[Configuration]:
    """Return the configurations that have all words of METRIC.

    Raises CannotCompareError where there is none; the message names the words that are nearest.
    """
    words = re.sub(r"[(),]", " ", metric).split()
    found = [each for each in configurations() if each.words.issuperset(words)]
    if words and found:
        return [each for each in found if each.name == metric] or found
    known = sorted(frozenset().union(*(each.words for each in configurations())))
    for word in (each for each in words if each not in known):
        near = difflib.get_close_matches(word, known) or {each.metric: 0 for each in configurations()}
        raise CannotCompareError(f"{word!r} names nothing that is measured; words are, for example, {', '.join(near)}")
    raise CannotCompareError(
        f"no configuration has all words of METRIC, {metric!r}; give words of one as the review prints it, such as "
        "'load_sectors transpose float32 -Xptxas -O3', or its whole name"
    )
