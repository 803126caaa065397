"""Load two measured commits, the thresholds and the source changes, and review these values."""

import itertools
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from kernelwatch.config import settings
from kernelwatch.errors import ERRORS, NoSuiteError, SuiteError
from kernelwatch.kernel import Kernel
from kernelwatch.review.commit_review import Review, compare_commits
from kernelwatch.review.pairing import ConfigurationFacts, pair_configurations
from kernelwatch.review.thresholds import MAX_PAIRS, Change, Thresholds, iter_noise, narrow_thresholds
from kernelwatch.store import index
from kernelwatch.store.measurements import CommitMeasurements, load_commit
from kernelwatch.store.results import History
from kernelwatch.store.source_changes import load_changes, locate_project
from kernelwatch.suite import launch_facts, registry
from kernelwatch.suite.benchmark_names import TIMED, classify_benchmark
from kernelwatch.suite.metrics import METRICS
from kernelwatch.workflow.select_results import CannotCompareError, Selection


def review_selection(selection: Selection, root: Path, names: Set[str] | None = None) -> Review:
    """Return the review of two selected commits: of all configurations, or of those whose name is in `names`.

    Without a suite, stored numbers are reviewed without the suite's facts. Raises CannotCompareError if the suite
    cannot be imported, a limit is not a ratio, or results cannot be read. Raises KernelwatchError if any other setting
    is invalid.
    """
    history, (base, head) = selection.history, (side.commit for side in selection.base_and_head)
    try:
        with suppress(NoSuiteError):
            registry.current_suite()
        limits = settings.evidence_limits()
        metrics = [name.replace("_", " ") for name in (*METRICS, *registry.RESOURCES)]
        settings.refuse_unknown_names(limits, metrics, ".limits")
        old, new = _load_sides(selection)
        describe = launch_facts.cache_by_class(describe_configuration)  # a review asks several times
        pairing = pair_configurations(old, new, describe)
        is_timed = any(classify_benchmark(pair.benchmark) == TIMED for pair in pairing.pairs)
        thresholds = load_thresholds(history, head, root) if is_timed else Thresholds()
    except (SuiteError, ValueError) as error:
        raise CannotCompareError(str(error)) from None
    changes = load_changes(locate_project(history.results, root), base, head)
    return compare_commits(
        selection,
        old,
        new,
        pairing,
        describe,
        thresholds=thresholds,
        changes=changes,
        limits=limits,
        names=names,
    )


def _load_sides(selection: Selection) -> tuple[CommitMeasurements, CommitMeasurements]:
    base, head = (
        load_commit(history, side.commit, environment)
        for history, side, environment in zip(
            selection.histories, selection.base_and_head, selection.environments, strict=True
        )
    )
    return base, head


def describe_configuration(benchmark: str, params: Mapping[str, str]) -> ConfigurationFacts:
    """Return the suite's facts about a configuration.

    `block` is set only for compiled numbers, `useful_bytes` only for others.
    """
    launch, kernel = launch_facts.find_launch(benchmark, params), launch_facts.find_definition(benchmark, params)
    is_compiled = "arch" in params
    return ConfigurationFacts(
        kernel=launch.kernel if launch else None,
        code_name=launch_facts.find_code_name(benchmark, params),
        verified=launch_facts.is_verified(kernel),
        generated=kernel is not None and kernel.is_generated,
        useful_bytes=None if is_compiled else launch_facts.find_useful_bytes(benchmark, params),
        conditions=_list_conditions(benchmark),
        block=_find_block(kernel, params.get("dtype", "")) if kernel and is_compiled else None,
    )


def _list_conditions(benchmark: str) -> tuple[str, ...]:
    """Return the unusual conditions of a benchmark's times: from L2, isolated, or the bytes that L2 fetches."""
    try:
        sweep = registry.current_suite().sweeps.get(benchmark.rpartition(".")[0])
    except NoSuiteError:
        return ()
    if sweep is None:
        return ()
    fetched = sweep.l2_fetch_bytes
    words = {"from L2": sweep.in_l2, "isolated": sweep.isolated, f"fetching {fetched} bytes": fetched}
    return tuple(word for word, holds in words.items() if holds)


def _find_block(kernel: Kernel, dtype: str) -> tuple[int, int] | None:
    try:
        return kernel.find_fixed_block(dtype)
    except ERRORS:
        return None


def load_thresholds(history: History, head: str, root: Path) -> Thresholds:
    """Return a machine's thresholds from its history up to a commit, so that later commits do not change verdicts."""
    line = [head, *history.graph.iter_ancestors(head)]
    pairs = itertools.islice(itertools.pairwise(line), MAX_PAIRS)
    return narrow_thresholds(change for commit, base in pairs for change in _load_noise(history, base, commit, root))


@lru_cache(maxsize=2 * MAX_PAIRS)
def _load_noise(history: History, base: str, head: str, root: Path) -> list[Change]:
    """Return the changes of times that are only noise. A file caches them until a file on which they depend changes."""
    digest = _make_stamps(history, root).digest_commits(str(history.compiler), base, head)
    path = index.cache_path(f"noise-{digest}", history.folder)
    changes = index.load_cached(path, list[Change])
    if changes is None:
        changes = list(_iter_noise(history, base, head))
        index.save_cached(path, changes)
    return changes


@lru_cache(maxsize=1)
def _make_stamps(history: History, root: Path) -> index.CommitStamps:
    return index.CommitStamps(history.folder, root)


def _iter_noise(history: History, base: str, head: str) -> Iterator[Change]:
    shared = set(history.list_environments(base)) & set(history.list_environments(head))
    for environment in sorted(shared):
        old, new = (load_commit(history, commit, environment, ("time",)) for commit in (base, head))
        yield from iter_noise(old, new, launch_facts.cache_by_class(describe_configuration))
