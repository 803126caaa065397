"""Reviews of each measured commit of a machine against the nearest ancestors that measured the same configurations."""

import copy
import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache, partial
from itertools import repeat
from pathlib import Path

import msgspec

from kernelwatch.review.commit_review import Review
from kernelwatch.review.standing_regressions import Drift, Regression, RegressionTracker
from kernelwatch.store import index, result_rows
from kernelwatch.store.models import Document
from kernelwatch.store.results import History
from kernelwatch.workflow import commit_cache
from kernelwatch.workflow.load_review import describe_configuration, review_selection
from kernelwatch.workflow.select_results import CannotCompareError, select_environments

#: asv's environment -> configuration -> its value; None if it failed.
MeasuredValues = Mapping[str, Mapping[str, float | None]]


@dataclass(frozen=True)
class HistoryStep:
    """A measured commit `head` of a history, and the ancestors to compare it with.

    `previous` is its nearest measured ancestor. `new` is the number of configurations that no ancestor measured.
    `shared` maps (ancestor, asv's environment) to the configurations to compare with this ancestor.
    """

    head: str
    previous: str
    new: int
    shared: Mapping[tuple[str, str], set[str]]


def review_step(history: History, step: HistoryStep, root: Path) -> tuple[list[Review], list[str]]:
    """Return the reviews of a step's commit against its ancestors, and the messages of comparisons that failed."""
    reviews, problems = list[Review](), list[str]()
    for (base, environment), names in step.shared.items():
        try:
            reviews.append(review_between(history, base, step.head, environment, names, root))
        except CannotCompareError as error:
            problems.append(str(error))
    return reviews, problems


def review_between(history: History, base: str, head: str, environment: str, names: Set[str], root: Path) -> Review:
    """Review the configurations `names` of two commits in one of asv's environments."""
    selections = select_environments(history, (base, head), (base, head))
    (selection,) = (candidate for candidate in selections if candidate.environment == environment)
    return review_selection(selection, root, names)


class _CachedTracker(msgspec.Struct):
    """The regressions and drifts of a history up to a commit; `drifts` is None if they were not searched."""

    tracker: RegressionTracker
    drifts: list[Drift] | None = None


def find_regressions(history: History, root: Path) -> list[Regression]:
    """Return a machine's unfixed regressions on the published branches, newest first, and then the drifts.

    The regressions up to each of the two newest commits are cached, because the newest commit may get new results.
    Raises CannotCompareError if a file that a review needs is not valid.
    """
    heads, keys = history.graph.line, commit_cache.compute_keys(history, root)
    # Digests of the steps up to each commit.
    digests = [*itertools.accumulate((keys[head] for head in heads), index.digest_texts, initial="")]
    path = index.cache_path("regressions", history.folder)
    cached = index.load_cached(path, dict[str, _CachedTracker]) or {}
    digest = next((digest for digest in reversed(digests) if digest in cached), "")
    state = cached.get(digest) or _CachedTracker(RegressionTracker())
    if digest != digests[-1] or state.drifts is None:
        earlier = dict[str, _CachedTracker]()
        for step in list_steps(history, heads[digests.index(digest) :]):
            if step.head == heads[-1]:
                earlier[digests[-2]] = _CachedTracker(copy.deepcopy(state.tracker))
            reviews, problems = review_step(history, step, root)
            if problems:
                raise CannotCompareError(problems[0])
            state.tracker.add_step(step.head, reviews)
        state.drifts = [*state.tracker.iter_drifts(partial(review_between, history, root=root))]
        index.save_cached(path, {**earlier, digests[-1]: state})
    return state.tracker.list_regressions(history.machine, state.drifts)


def list_steps(history: History, heads: Iterable[str]) -> Iterator[HistoryStep]:
    """Yield the steps of some commits of a machine's history; commits without a measured ancestor have none."""
    load_measured = cache(partial(list_measured, history))
    steps = (find_step(history, head, load_measured) for head in heads)
    return (step for step in steps if step is not None)


def find_step(history: History, head: str, load_measured: Callable[[str], MeasuredValues]) -> HistoryStep | None:
    """Return the step of a commit; None if it has no measured ancestor. `load_measured(commit)` is `list_measured`.

    A run may measure only a part of the suite. So each configuration is compared with the nearest ancestor that
    measured it. If the configuration failed at this ancestor, but not at `head`, it is also compared with the nearest
    ancestor that has a value.
    """
    previous = next(history.graph.iter_ancestors(head), None)
    if previous is None:
        return None
    bases: dict[tuple[str, str], set[str]] = defaultdict(set)
    new = 0
    for environment, own_values in load_measured(head).items():
        unseen, valued = set(own_values), _select_valued(own_values)
        for base in history.graph.iter_ancestors(head):
            base_values = load_measured(base).get(environment, {})
            values = _select_valued(base_values)
            if shared := (unseen & base_values.keys()) | (valued & values):
                bases[base, environment] |= shared
            unseen, valued = unseen - base_values.keys(), valued - values
            if not unseen | valued:
                break
        new += len(unseen)
    return HistoryStep(head, previous, new, dict(bases))


def _select_valued(values: Mapping[str, float | None]) -> set[str]:
    return {name for name, value in values.items() if value is not None}


def list_measured(history: History, commit: str) -> dict[str, dict[str, float | None]]:
    """Return asv's environment -> configuration -> its value; None if it failed.

    Skipped configurations are absent, and benchmarks for which `History.explain_absence` returns a reason.
    """
    environments = history.load_environments(commit)
    return {environment: dict(_iter_values(history, results)) for environment, results in environments.items()}


def _iter_values(history: History, results: Document) -> Iterator[tuple[str, float | None]]:
    for benchmark, row in results.results.items():
        if history.explain_absence(results, benchmark):
            continue
        names = _list_names(benchmark, tuple(map(tuple, row.params)))
        for name, value in zip(names, row.result or repeat(None), strict=False):
            if value is None or math.isfinite(value):
                yield name, value


@cache
def _list_names(benchmark: str, axes: tuple[tuple[str, ...], ...]) -> list[str]:
    """Return the names of a benchmark's configurations as `Point.format_name` does, in the order of a row."""
    unquoted = [[text.strip("'") for text in axis] for axis in axes]
    return [f"{benchmark}({text})" if axes else benchmark for text in result_rows.list_configurations(unquoted)]


def list_failing(history: History, commit: str) -> list[str]:
    """Return the kernels, or the benchmarks without a kernel, with a configuration that failed at a commit."""
    names = history.list_benchmarks("time") + history.list_benchmarks("track")
    kernels = (
        describe_configuration(name, point.params).kernel or name
        for results in history.load_environments(commit).values()
        for name in names
        for point in history.iter_points(results, name)
        if point.failed
    )
    return list(dict.fromkeys(kernels))
