"""Controls of a run on another GPU than its base's: times of base's code on this GPU.

A review of the two commits compares them with base's stored times. So it has controls even if every kernel changed.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from asv.console import log

from kernelwatch.config.project_root import ROOT
from kernelwatch.instrument import machine
from kernelwatch.runner.commit_process import CommitProcess, PackageError
from kernelwatch.runner.commit_run import DIGITS
from kernelwatch.runner.protocol import RunConfiguration, Task
from kernelwatch.store import record, result_rows
from kernelwatch.store.graph import CommitGraph
from kernelwatch.store.measurements import CommitMeasurements, load_commit
from kernelwatch.store.results import History
from kernelwatch.suite.benchmark_names import Kind, find_kind
from ptxcount.util.grammar import count_noun

#: Rounds of a control; thresholds were simulated with one round (docs/evidence/review.md).
_ROUNDS = 1

#: A class of benchmarks, and the index of a configuration in it.
ConfigurationKey = tuple[str, int]

#: Commit -> benchmark -> parameters -> seconds, as in the record of a run.
ControlTimes = dict[str, dict[str, dict[str, float]]]


class _Expected(NamedTuple):
    """The benchmark of a control, and the hash of base's cubin."""

    benchmark: str
    cubin_sha256: str


def find_base(
    history: History, commit: str, environment: str, of_run: Collection[str], is_skipped: Callable[[str], bool]
) -> CommitMeasurements | None:
    """Return the times of the nearest ancestor of a commit, stored or of the same run, if another GPU measured it.

    `of_run` are the commits of the run; `is_skipped` tells if the run does not measure one of them. Return None, too,
    if the run measures the ancestor, or asv's environment has no results of it.
    """
    graph = CommitGraph(ROOT, dict.fromkeys(of_run, 0) | history.commit_dates())
    base = next(graph.iter_ancestors(commit), None)
    if base is None or environment not in history.list_environments(base):
        return None
    if base in of_run and not is_skipped(base):
        return None
    runs = record.read_records(history.results, history.machine, commit=base)
    gpus = {run.get("before", {}).get("uuid") for run in runs}
    other_gpus = gpus - {machine.volatile_facts().get("uuid")}
    return load_commit(history, base, environment, ("time",)) if other_gpus else None


def measure_controls(
    base: CommitMeasurements,
    configurations: Collection[RunConfiguration],
    benchmarks: Mapping[str, Mapping[str, Any]],
    start: Callable[[str], AbstractContextManager[CommitProcess]],
) -> ControlTimes:
    """Return times of base's code on this GPU.

    `choose_controls` chooses them among base's times of other GPUs. Those of `configurations` with the same machine
    code are left out: the run has measured them. `benchmarks` are those of the run. `start` starts the process of a
    commit. Raises PackageError if this process fails.
    """
    expected = _choose_configurations(base, configurations, benchmarks)
    times: dict[str, dict[str, float]] = {}
    if not expected:
        return {}
    controls = count_noun(len(expected), "configuration")
    log.info(f"another GPU measured {base.commit[:8]}: timing its code in {controls}, as controls (docs/method.md)")
    with start(base.commit) as child:
        child.send_task(_make_task(base.commit, expected, benchmarks))
        for outcome in child.iter_messages():
            if isinstance(outcome, RunConfiguration) and not outcome.throttle_reasons and outcome.machine_code:
                benchmark, cubin_sha256 = expected[outcome.group, outcome.index]
                samples = outcome.numbers.get(benchmark)
                if samples and outcome.machine_code.cubin_sha256 == cubin_sha256:
                    median = statistics.median(samples)
                    times.setdefault(benchmark, {})[outcome.params] = float(f"{median:.{DIGITS}g}")
        if problem := child.wait():
            raise PackageError(problem)
    return {base.commit: times} if times else {}


def _choose_configurations(
    base: CommitMeasurements,
    configurations: Collection[RunConfiguration],
    benchmarks: Mapping[str, Mapping[str, Any]],
) -> dict[ConfigurationKey, _Expected]:
    # These imports, of the review and the suite, take as long as the rest of a run's imports.
    from kernelwatch.review.controls import choose_controls, list_candidates  # noqa: PLC0415
    from kernelwatch.review.pairing import Pair  # noqa: PLC0415
    from kernelwatch.suite.launch_facts import cache_by_class  # noqa: PLC0415
    from kernelwatch.workflow.load_review import describe_configuration  # noqa: PLC0415

    describe = cache_by_class(describe_configuration)
    own_hashes = _collect_hashes(configurations)
    if not any(find_kind(group) is Kind.TIMED for group, _ in own_hashes):
        return {}
    keys = _index_configurations({name: benchmarks[name] for name in base.benchmarks.keys() & benchmarks.keys()})

    def find_key(pair: Pair) -> ConfigurationKey | None:
        # None for a stored configuration that today's axes lack
        return keys.get((pair.benchmark, ", ".join(pair.base.params.values())))

    uuid = machine.volatile_facts().get("uuid")
    candidates = list_candidates(base, uuid, describe) if uuid else []
    expected: dict[ConfigurationKey, _Expected] = {}
    for pair in choose_controls(filter(find_key, candidates), describe):
        code_name = describe(pair.benchmark, pair.base.params).code_name
        arch = base.name_architecture(pair.benchmark, pair.base.params)
        cubin_sha256 = base.cubins.find_cubin_hash(base.commit, arch or "", code_name or "")
        if (key := find_key(pair)) and cubin_sha256 and cubin_sha256 != own_hashes.get(key):
            expected[key] = _Expected(pair.benchmark, cubin_sha256)
    return expected


def _collect_hashes(configurations: Iterable[RunConfiguration]) -> dict[ConfigurationKey, str]:
    """Return the hashes of the cubins that the run measured, without throttling."""
    return {
        (configuration.group, configuration.index): configuration.machine_code.cubin_sha256
        for configuration in configurations
        if configuration.machine_code and configuration.numbers and not configuration.throttle_reasons
    }


def _index_configurations(
    benchmarks: Mapping[str, Mapping[str, Any]],
) -> dict[tuple[str, str], ConfigurationKey]:
    """Return (benchmark, its parameters as a text) -> key, for all configurations of benchmarks."""
    return {
        (name, text.replace("'", "")): (name.rpartition(".")[0], index)
        for name, benchmark in benchmarks.items()
        for index, text in enumerate(result_rows.list_configurations(benchmark["params"]))
    }


def _make_task(
    commit: str, expected: Mapping[ConfigurationKey, _Expected], benchmarks: Mapping[str, Mapping[str, Any]]
) -> Task:
    indices = defaultdict[str, list[int]](list)
    for group, index in sorted(expected):
        indices[group].append(index)
    return Task(
        indices=indices,
        benchmarks=sorted({benchmark for benchmark, _ in expected.values()}),
        versions={group: benchmarks[benchmark]["version"] for (group, _), (benchmark, _) in expected.items()},
        rounds=dict.fromkeys(indices, _ROUNDS),
        commit=commit,
    )
