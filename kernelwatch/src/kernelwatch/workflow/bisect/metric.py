"""The configurations of the current suite, and those that match METRIC of `kernelwatch bisect`."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from kernelwatch.kernel import Launch
from kernelwatch.suite import launch_facts, registry
from kernelwatch.suite.benchmark_names import Kind
from kernelwatch.suite.metrics import METRICS
from kernelwatch.workflow.select_results import CannotCompareError

#: Pattern of the metrics' names in a review, such as "sectors loaded" or "load sectors per request".
_SPACED = re.compile(rf"\b({'|'.join([*METRICS, *registry.RESOURCES]).replace('_', ' ')})\b(?: (?:a|per) request)?")


@dataclass(frozen=True)
class SuiteConfiguration:
    """A configuration of a benchmark of the suite: the benchmark, its kind, and the parameters as texts."""

    benchmark: str
    kind: Kind
    params: Mapping[str, str]

    @property
    def name(self) -> str:
        """Benchmark and parameters, as `Row.name` has them."""
        return f"{self.benchmark}({', '.join(self.params.values())})"

    @property
    def launch(self) -> Launch:
        """The launch that the configuration measures."""
        launch = launch_facts.find_launch(self.benchmark, self.params)
        assert launch is not None, "the configuration is one of the suite"
        return launch

    @cached_property
    def words(self) -> frozenset[str]:
        """All words by which METRIC can select this configuration."""
        _, group, number = self.benchmark.split(".")
        metric = "time" if self.kind is Kind.TIMED else number.removeprefix("track_")
        return frozenset([self.kind.value, metric, group, *_split_words(self.name), *str(self.launch).split()])


def _split_words(text: str) -> list[str]:
    return re.sub(r"[(),]", " ", text).split()


@cache
def list_configurations() -> tuple[SuiteConfiguration, ...]:
    """Return all configurations of the suite, except copy ratios."""
    return tuple(
        SuiteConfiguration(benchmark, kind, {name: str(value) for name, value in point.items()})
        for benchmark, (kind, sweep) in registry.current_suite().benchmarks.items()
        if kind is not Kind.COPY_RATIO
        for point in sweep.points()
    )


def match_configurations(metric: str) -> list[SuiteConfiguration]:
    """Return the configurations that have all words of METRIC, or only the configuration that METRIC names in full.

    Raises CannotCompareError, with similar words, if METRIC is empty or no configuration has all its words.
    """
    words = _split_words(_SPACED.sub(lambda match: match[1].replace(" ", "_"), metric))
    matches = [configuration for configuration in list_configurations() if configuration.words.issuperset(words)]
    if words and matches:
        return [configuration for configuration in matches if configuration.name == metric] or matches
    known_words = frozenset().union(*(configuration.words for configuration in list_configurations()))
    unknown = [word for word in words if word not in known_words]
    near = [match for word in unknown for match in difflib.get_close_matches(word, sorted(known_words))]
    missing = " or ".join(map(repr, unknown)) or f"all words of METRIC, {metric!r}"
    similar = f"did you mean {' or '.join(near)}? " if near else ""
    raise CannotCompareError(
        f"no configuration has {missing}; {similar}"
        f"use words of a configuration in the review, such as 'load_sectors {registry.current_suite().example}'"
    )
