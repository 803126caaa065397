"""The data of each measured commit for the pages. They are cached until an input of the commit changes."""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from kernelwatch.show.site import changes, configurations, packed
from kernelwatch.store import record
from kernelwatch.store.results import History
from kernelwatch.suite.benchmark_names import TIMED, classify_benchmark
from kernelwatch.workflow import commit_cache
from kernelwatch.workflow.steps import list_failing, list_measured

#: Name of a GPU if its run recorded no UUID.
UNKNOWN_GPU = "unknown"


class MeasuredCommit(msgspec.Struct):
    """A commit as a machine measured it."""

    #: Benchmark -> its packed numbers, in the order of the axes.
    values: dict[str, str]
    #: Benchmark -> kind of remark -> index of a configuration -> text. The kinds are `origins`, the commits whose
    #: numbers were reused; `gpus`, the GPU of each configuration if several GPUs shared the benchmark; and `failed`.
    remarks: dict[str, dict[str, dict[str, str]]] = {}
    #: Benchmark -> versions of the PTX generators in the last run that measured it.
    generators: dict[str, str] = {}
    #: Facts of the last run that timed in the last environment with times, or else of the last run. `gpus` maps the
    #: first digits of a GPU's UUID to the benchmarks that this GPU timed. Environments are sorted by name.
    facts: dict[str, Any] = {}
    #: Day, GPU and architecture of the last run that timed in the last environment, or else of the last run there.
    run: dict[str, str] = {}
    #: Changes of the commit. Without a measured ancestor, this is None, and `failing` has the failing kernels.
    change: dict[str, Any] | None = None
    failing: list[str] = []


def load_commits(
    history: History, benchmarks: Iterable[str], repository: Path, root: Path
) -> dict[str, MeasuredCommit]:
    """Return commit -> its data for the measured commits of a machine, oldest first."""
    load_measured = cache(partial(list_measured, history))

    def read_commit(commit: str) -> MeasuredCommit:
        values = load_values(history, commit, benchmarks)
        return MeasuredCommit(
            values,
            {name: remarks for name in benchmarks if (remarks := list_remarks(history, commit, name))},
            find_generators(history, commit, values),
            describe_runs(history, commit, values),
            _describe_last_run(history, commit),
            changes.describe_change(history, commit, load_measured, repository, root),
            [] if any(history.graph.iter_ancestors(commit)) else list_failing(history, commit),
        )

    return commit_cache.load_values_by_commit("site", history, MeasuredCommit, read_commit, root)


def load_values(history: History, commit: str, benchmarks: Iterable[str]) -> dict[str, str]:
    """Return benchmark -> its packed values at a commit. A value in a later environment replaces an earlier one."""
    by_benchmark: dict[str, list[float | None]] = {}
    for results in history.load_environments(commit).values():
        for benchmark in benchmarks:
            measured = history.list_values(results, benchmark) if benchmark in results.results else []
            if any(value is not None for value in measured):
                previous = by_benchmark.get(benchmark, measured)
                by_benchmark[benchmark] = [
                    old if new is None else new for old, new in zip(previous, measured, strict=True)
                ]
    return {
        name: packed.pack_numbers(
            values,
            is_time=history.get_type(name) == "time",
            digits=6 if classify_benchmark(name) == TIMED else None,  # a page shows no more
        )
        for name, values in by_benchmark.items()
    }


def list_remarks(history: History, commit: str, benchmark: str) -> dict[str, dict[str, str]]:
    """Return a benchmark's value in `MeasuredCommit.remarks`. Indices are those of `list_combinations`, as texts."""
    remarks: dict[str, dict[str, str]] = defaultdict(dict)
    for results in history.load_environments(commit).values():
        row = results.results.get(benchmark)
        if row is None:
            continue
        are_several = len(history.list_gpus(results, benchmark=benchmark)) > 1
        if row.result and None not in row.result and not are_several and not history.find_origins(commit, benchmark):
            continue  # fast path: most of a site's million configurations have no remarks
        combinations = configurations.list_combinations(history.find_axes(benchmark))
        numbers = {tuple(params.values()): str(number) for number, params in enumerate(combinations)}
        for point in history.iter_points(results, benchmark):
            uuids = history.list_gpus(results, benchmark=benchmark, point=point) if are_several else set()
            uuid = uuids.pop() if len(uuids) == 1 else None
            number = numbers.get(tuple(point.params.values()))
            failed = "failed" if point.failed else ""
            texts = {"origins": point.origin[:8], "gpus": _shorten_uuid(uuid or ""), "failed": failed}
            for kind, text in texts.items():
                if text and number is not None:
                    remarks[kind][number] = text
    return remarks


def find_generators(history: History, commit: str, benchmarks: Iterable[str]) -> dict[str, str]:
    """Return `MeasuredCommit.generators` of a commit."""
    generators: dict[str, str] = {}
    for results in history.load_environments(commit).values():
        if not any(map(record.format_generators, history.list_runs(results))):
            continue  # fast path: most suites have no generated kernel
        for benchmark in benchmarks:
            if (runs := history.list_runs(results, benchmark)) and (versions := record.format_generators(runs[-1])):
                generators[benchmark] = versions
    return generators


def _shorten_uuid(uuid: str) -> str:
    return uuid.removeprefix("GPU-")[:8]


def describe_runs(history: History, commit: str, benchmarks: Iterable[str]) -> dict[str, Any]:
    """Return `MeasuredCommit.facts` of a commit; `benchmarks` are those that have values there."""
    environments = list(history.load_environments(commit).values())
    times = history.list_benchmarks("time")
    with_times = [
        results for results in environments if not all(history.explain_absence(results, time) for time in times)
    ]
    last = (with_times or environments)[-1]
    run = history.find_last_timed_run(last)
    gpus: dict[str, list[str]] = defaultdict(list)
    for benchmark in (name for name in benchmarks if classify_benchmark(name) == TIMED):
        for uuid in history.list_gpus(*environments, benchmark=benchmark):
            gpus[UNKNOWN_GPU if uuid is None else _shorten_uuid(uuid)].append(benchmark)
    return {
        "date": last.date,
        "driver": run.get("after", {}).get("driver"),
        **{fact: run.get(fact) for fact in ("gpu", "arch", "nvcc", "peak_bytes_per_second")},
        "gpus": dict(sorted(gpus.items())),
    }


def _describe_last_run(history: History, commit: str) -> dict[str, str]:
    """Return `MeasuredCommit.run` of a commit."""
    *_, results = history.load_environments(commit).values()
    run = history.find_last_timed_run(results)
    uuid = (run.get("before") or {}).get("uuid") or ""
    return {
        "day": (run.get("started") or "")[:10],
        "gpu": " ".join(filter(None, [run.get("gpu"), _shorten_uuid(uuid)])),
        "arch": run.get("arch") or "",
    }
