"""From the words of METRIC to configurations of the suite, by their stored names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from kernelwatch import suite
from kernelwatch.review.commits import CannotCompareError
from kernelwatch.suite import Kind

#: Words that an error message lists.
_LISTED = 5

_ALLOWED = (
    "give words of a configuration as the review prints it, such as "
    "'load_sectors transpose float32 -Xptxas -O3', or its whole name"
)


class UnknownMetricError(CannotCompareError):
    """METRIC names nothing that is measured; the message says which words it may have."""


@dataclass(frozen=True)
class Configuration:
    """One number of the suite: asv's name of the benchmark, what it measures, and the parameters as they are stored."""

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
        method = self.benchmark.rpartition(".")[2]
        return "time" if self.kind is Kind.TIMED else method.removeprefix("track_")

    @cached_property
    def words(self) -> frozenset[str]:
        """What METRIC may call it: by metric, kind, benchmark, parameters, and the launch's text."""
        launch = suite.launch(self.benchmark, self.params)
        texts = [self.kind.value, self.metric, self.metric.replace("_", " "), self.benchmark]
        texts += [self.benchmark.replace(".", " "), *self.params.values(), str(launch or "")]
        return frozenset(word for text in texts for word in text.split())


@cache
def configurations() -> tuple[Configuration, ...]:
    """Return every number that the suite measures, but not the controls, which are evidence beside the times."""
    return tuple(
        Configuration(benchmark, kind, {name: str(value) for name, value in point.items()})
        for benchmark, (kind, sweep) in suite.BENCHMARKS.items()
        if kind is not Kind.CONTROL
        for point in sweep.points()
    )


def matching(metric: str) -> list[Configuration]:
    """Return the configurations that have all words of METRIC; of a whole name it is one.

    Raises
    ------
    UnknownMetricError
        There is none.
    """
    words = re.sub(r"[(),]", " ", metric).split()
    if not words:
        raise UnknownMetricError(f"METRIC is empty; {_ALLOWED}")
    found = [each for each in configurations() if each.words.issuperset(words)]
    if not found:
        known = frozenset[str]().union(*(each.words for each in configurations()))
        unknown = [_unknown(word, known) for word in words if word not in known]
        raise UnknownMetricError("; ".join(unknown) or f"no configuration has all of {', '.join(words)}; {_ALLOWED}")
    return found


def _unknown(word: str, known: frozenset[str]) -> str:
    nearest = difflib.get_close_matches(word, known, _LISTED) or sorted(each for each in known if word in each)
    metrics = ", ".join(dict.fromkeys(each.metric for each in configurations()))
    told = f"the nearest words are {', '.join(nearest[:_LISTED])}" if nearest else f"the metrics are {metrics}"
    return f"{word!r} names nothing that is measured; {told}{'' if nearest else f'; {_ALLOWED}'}"
