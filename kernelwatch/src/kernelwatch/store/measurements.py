"""All measurements of one commit as typed values: results, samples, GPUs, machine code, failures and skips."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec.structs import replace

from kernelwatch.store import record
from kernelwatch.store.cubins import CubinHashes
from kernelwatch.store.models import Document
from kernelwatch.store.points import Point
from kernelwatch.store.results import History
from kernelwatch.suite.benchmark_names import TIMED, classify_benchmark, copy_ratio_name
from kernelwatch.toolchain import releases as compilers


class RunFacts(NamedTuple):
    """The facts of a run that may explain a change; None or empty if not recorded. `uuid` is that of the GPU."""

    identity: tuple[object, ...] = ()
    uuid: str | None = None
    gpu: str | None = None
    driver: str | None = None
    compiler: str | None = None
    arch: str | None = None
    l2_fetch_bytes: int | None = None
    generators: str | None = None
    #: Files that the run imported with uncommitted changes.
    uncommitted: str = ""


@dataclass(frozen=True)
class BenchmarkMeasurements:
    """The results of a benchmark at a commit, and the runs that measured them, oldest first.

    `type` is asv's, "time" or "track". `points` maps the parameters of a configuration, as (name, value) pairs, to its
    result. `absence` says why there are no points. `failures` are the reasons of failures from the newest run that
    recorded any. `skips` are the reasons of skips from the newest complete run that recorded any. `controls` maps
    another commit, whose code these runs also measured, to its times in seconds, by the text of the parameters and the
    UUID of the GPU.
    """

    type: str
    unit: str
    absence: str = ""
    points: Mapping[tuple[tuple[str, str], ...], Point] = field(default_factory=dict)
    runs: tuple[RunFacts, ...] = ()
    failures: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    controls: Mapping[str, Mapping[tuple[str, str | None], float]] = field(default_factory=dict)

    @property
    def last_run(self) -> RunFacts:
        """The last run; a run without facts if none was recorded."""
        return self.runs[-1] if self.runs else RunFacts()


@dataclass(frozen=True, eq=False)
class CommitMeasurements:
    """All measurements of one machine at one commit in one of asv's environments.

    `benchmarks` has the machine's benchmarks of the loaded types by name, times first, without copy ratios. `arch` is
    the GPU's architecture, `peak` its bandwidth in bytes per second; both are from the last run that timed, or else the
    last run. `skips` maps a reason to the number of configurations that the last run skipped.
    """

    machine: str
    commit: str
    environment: str
    compiler: str | None
    benchmarks: Mapping[str, BenchmarkMeasurements]
    cubins: CubinHashes
    arch: str | None = None
    peak: object = None
    skips: Mapping[str, int] = field(default_factory=dict)

    def name_architecture(self, benchmark: str, params: Mapping[str, str]) -> str | None:
        """Return the architecture of a configuration, or of the GPU that ran; None if both are unknown."""
        return params.get("arch") or self.benchmarks[benchmark].last_run.arch


@lru_cache(maxsize=8)
def load_commit(
    history: History, commit: str, environment: str, types: tuple[str, ...] = ("time", "track")
) -> CommitMeasurements:
    """Return a machine's measurements of a commit in one of asv's environments, for some of asv's types of benchmarks.

    The last results are cached, because neighbouring reviews of a history share commits.
    """
    results = history.load_document(commit, environment)
    names = [name for type_ in types for name in history.list_benchmarks(type_)]
    copy_ratios = {copy_ratio_name(name) for name in history.list_benchmarks("time")}  # they become part of the times
    run = history.find_last_timed_run(results)
    skips: Counter[str] = Counter()
    for skip in history.find_last_run(results).get("skipped", ()):
        if skip["commit"] == commit:
            skips[skip["reason"]] += skip["configurations"]
    return CommitMeasurements(
        machine=history.machine,
        commit=commit,
        environment=environment,
        compiler=compilers.compiler_of_results(results.env_vars),
        benchmarks={name: _load_benchmark(history, results, name) for name in names if name not in copy_ratios},
        cubins=history.load_cubin_hashes(commit, results),
        arch=run.get("arch") and str(run["arch"]),
        peak=run.get("peak_bytes_per_second"),
        skips=skips,
    )


def _load_benchmark(history: History, results: Document, name: str) -> BenchmarkMeasurements:
    asv_type, unit, absence = history.get_type(name), history.get_unit(name), history.explain_absence(results, name)
    failures = _find_reasons("failed", history.list_runs(results), results.commit_hash, name)
    if absence:
        return BenchmarkMeasurements(asv_type, unit, absence, failures=failures)
    runs = history.list_runs(results, name)
    points = history.iter_points(results, name)
    if classify_benchmark(name) == TIMED:
        points = _add_circumstances(history, results, name, runs)
    points_by_params = {tuple(point.params.items()): point for point in points}
    whole_runs = [run for run in runs if not record.list_selected(run, name)]
    skips = _find_reasons("skipped", whole_runs, results.commit_hash, name)
    facts = tuple(map(_read_facts, runs))
    controls: dict[str, dict[tuple[str, str | None], float]] = {}
    for run, run_facts in zip(runs, facts, strict=True):
        for commit, times in run.get("controls", {}).items():
            seconds = times.get(name, {}).items()
            controls.setdefault(commit, {}).update(((params, run_facts.uuid), time) for params, time in seconds)
    return BenchmarkMeasurements(asv_type, unit, "", points_by_params, facts, failures, skips, controls)


def _add_circumstances(
    history: History, results: Document, name: str, runs: Sequence[Mapping[str, Any]]
) -> Iterator[Point]:
    """Yield the results of a timed benchmark, with the GPUs, the throttle reasons and the ratio to the copy's time."""
    copies = {tuple(point.params.items()): point.value for point in history.iter_points(results, copy_ratio_name(name))}
    throttle_reasons: dict[str, dict[str, None]] = {}
    for entry in (entry for run in runs for entry in run.get("held_back") or ()):
        if entry["commit"] == results.commit_hash:
            throttle_reasons.setdefault(entry["configuration"], {}).update(dict.fromkeys(map(str, entry["reasons"])))
    runs_with_uuids = [(run, _read_facts(run).uuid) for run in runs]
    for point in history.iter_points(results, name):
        texts = ", ".join(point.params.values())
        gpus = frozenset(uuid for run, uuid in runs_with_uuids if record.has_selected(run, name, texts))
        reasons = ", ".join(throttle_reasons.get(point.format_name(name), ()))
        copy = copies.get(tuple(point.params.items())) if point.value is not None else None
        yield replace(point, gpus=gpus, throttle_reasons=reasons, copies=copy)


def _read_facts(run: Mapping[str, Any]) -> RunFacts:
    gpu_before = run.get("before") or {}
    identity = run.get("run"), run.get("started"), run.get("ended"), tuple(run["commits"])
    of_gpu: dict[str, Any] = {name: gpu_before.get(name) for name in ("uuid", "driver", "l2_fetch_bytes")}
    of_run: dict[str, Any] = {
        "gpu": run.get("gpu"),
        "compiler": run.get("nvcc"),
        "arch": run.get("arch"),
        "generators": record.format_generators(run) or None,
        "uncommitted": ", ".join(run.get("uncommitted", ())),
    }
    return RunFacts(identity, **of_run, **of_gpu)


def _find_reasons(outcome: str, runs: Sequence[Mapping[str, Any]], commit: str, name: str) -> tuple[str, ...]:
    """Return a benchmark's reasons of an outcome, "failed" or "skipped", from the newest run that recorded any."""
    for run in reversed(runs):
        entries = (entry for entry in run.get(outcome, ()) if (entry["commit"], entry["benchmark"]) == (commit, name))
        if reasons := tuple(entry["reason"] for entry in entries):
            return reasons
    return ()
