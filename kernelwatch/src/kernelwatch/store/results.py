"""The stored history of a machine: the results of all commits, and the runs that measured them."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from kernelwatch.config.project_root import CONFIG_FILE
from kernelwatch.store import asv_files, folders, index, reading, record, result_rows
from kernelwatch.store.cubins import CubinHashes
from kernelwatch.store.graph import CommitGraph
from kernelwatch.store.models import Document
from kernelwatch.store.points import Point
from kernelwatch.suite.benchmark_names import measurement_group
from kernelwatch.toolchain import releases as compilers

#: Maximum number of documents with samples in memory. Neighbouring steps of a history share them.
_MAX_DOCUMENTS = 16


def _finite_or_none(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


class History:
    """The stored results of one machine.

    Parameters
    ----------
    machine : str
        The machine's name.
    root : Path
        The folder of `asv.conf.json`.
    config : object, optional
        asv's configuration, if asv is running and has loaded it; then `root` is only the repository.
    compiler : str, optional
        The compiler whose results to read, named as in `kernelwatch.toolchain.releases`. By default it is the default
        compiler, or the one with most results on a machine that never used the default.

    Raises
    ------
    FileNotFoundError
        The folder of results does not have the machine.
    UnreadableError
        asv's configuration or list of benchmarks is not readable.
    """

    def __init__(self, machine: str, root: Path, *, config: Any = None, compiler: str | None = None) -> None:
        self._root = root
        self._branches = (config or asv_files.load_configuration(root / CONFIG_FILE)).branches
        #: Folder of the results of all machines.
        self.results = folder = folders.results_folder(root, config)
        if machine not in (machines := folders.list_machines(folder)):
            raise FileNotFoundError(
                f"{folder} has no results of {machine}, only of {', '.join(machines) or 'no machine'}; "
                "to measure here, run: asv run --record-samples HEAD^!"
            )
        self.machine = machine
        #: Folder of the results and records of this machine; read only.
        self.folder = folder / machine
        self._benchmarks = asv_files.load_benchmarks(folder)
        self._files = index.list_results(self.folder)
        self._points = WeakKeyDictionary[Document, dict[str, tuple[Point, ...]]]()
        self._read_document = lru_cache(_MAX_DOCUMENTS)(self._read_files)
        self._documents_without_samples: dict[tuple[str, str], Document] = {}
        self._runs: dict[str, list[dict[str, Any]]] = {}
        self._read_cubin_hashes = lru_cache(_MAX_DOCUMENTS)(partial(CubinHashes, self.folder))
        by_environment = {(entry.commit, entry.environment): entry for entry in self._files.values()}
        used_compilers = [compilers.compiler_of_results(entry.variables) for entry in by_environment.values()]
        #: The names of the compilers with results; None is the default.
        self.compilers = list(dict.fromkeys(used_compilers))
        self._choose_compiler(compiler or compilers.primary_compiler(used_compilers))

    def _choose_compiler(self, compiler: str | None) -> None:
        #: Name of the compiler of these results; None is the default.
        self.compiler = compiler
        entries = [
            entry for entry in self._files.values() if compilers.compiler_of_results(entry.variables) == compiler
        ]
        self._dates = {entry.commit: entry.date for entry in entries}
        self._environments: dict[str, list[str]] = {}
        for commit, environment in sorted({(entry.commit, entry.environment) for entry in entries}):
            self._environments.setdefault(commit, []).append(environment)
        self._origins: dict[str, dict[str, dict[str, str]]] = {}
        #: The measured commits in git.
        self.graph = CommitGraph(self._root, self.commit_dates(), self._branches)

    def select_compiler(self, compiler: str | None) -> History:
        """Return the history of another compiler on the same machine."""
        history = copy.copy(self)
        history._choose_compiler(compiler)
        return history

    def list_benchmarks(self, asv_type: str) -> list[str]:
        """Return the names of the benchmarks of one of asv's types, "time" or "track", sorted."""
        return [name for name in sorted(self._benchmarks) if self.get_type(name) == asv_type]

    def find_commit(self, prefix: str) -> Document | None:
        """Return the results of the commit whose hash begins with `prefix`, in its last environment; None if none."""
        commits = (commit for commit in self._dates if commit.startswith(prefix))
        return next((self.load_document(commit, self._environments[commit][-1]) for commit in commits), None)

    def list_commits(self) -> list[str]:
        """Return the hashes of the measured commits, oldest first, each after its ancestors."""
        return list(self.graph.commits)

    def commit_dates(self) -> dict[str, int]:
        """Return the date of each measured commit, in milliseconds since 1970."""
        return dict(self._dates)

    def list_environments(self, commit_hash: str) -> list[str]:
        """Return the names of asv's environments that measured a commit, sorted."""
        return list(self._environments.get(commit_hash, ()))

    def load_environments(self, commit_hash: str) -> dict[str, Document]:
        """Return name of asv's environment -> results of a commit, sorted by name.

        Samples are left out: those of a long history would not fit into memory.
        """
        documents, environments = self._documents_without_samples, self.list_environments(commit_hash)
        for environment in environments:
            if (commit_hash, environment) not in documents:
                document = self.load_document(commit_hash, environment)
                documents[commit_hash, environment] = document.without_samples()
        return {environment: documents[commit_hash, environment] for environment in environments}

    def load_document(self, commit_hash: str, environment: str) -> Document:
        """Return the results of a commit in one of asv's environments. Results that were read last are cached."""
        return self._read_document(commit_hash, environment)

    def _read_files(self, commit_hash: str, environment: str) -> Document:
        key = commit_hash, environment
        paths = (path for path, entry in self._files.items() if (entry.commit, entry.environment) == key)
        (document,) = reading.merge_files(self.folder, reading.read_files(paths))
        return document

    def load_cubin_hashes(self, commit_hash: str, results: Document) -> CubinHashes:
        """Return the hashes of a commit's machine code by the compiler of `results`. The last hashes are cached."""
        return self._read_cubin_hashes(compilers.compiler_of_results(results.env_vars), commit_hash)

    def find_axes(self, benchmark: str) -> dict[str, list[str]]:
        """Return axis -> its values in results/benchmarks.json; {} for an unknown benchmark."""
        if (description := self._benchmarks.get(benchmark)) is None:
            return {}
        values = [[text.strip("'") for text in axis] for axis in description.params]
        return dict(zip(description.param_names, values, strict=True))

    def get_unit(self, benchmark: str) -> str:
        """Return the unit of a benchmark's values; empty if it has none."""
        return self._benchmarks[benchmark].unit or ""

    def get_title(self, benchmark: str) -> str:
        """Return the pretty name of a benchmark, or else its name."""
        return self._benchmarks[benchmark].pretty_name or benchmark

    def get_type(self, benchmark: str) -> str:
        """Return asv's type of a benchmark, for example "time"."""
        return self._benchmarks[benchmark].type

    def list_values(self, results: Document, benchmark: str) -> list[float | None]:
        """Return a benchmark's values in the order of its current axes; None for a missing value.

        The list is empty if `explain_absence` returns a reason.
        """
        if self.explain_absence(results, benchmark):
            return []
        axes = self._benchmarks[benchmark].params
        stored = result_rows.reindex(results.get_row(benchmark), axes)["result"] or [None] * math.prod(map(len, axes))
        return list(map(_finite_or_none, stored))

    def explain_absence(self, results: Document, benchmark: str) -> str:
        """Return why a benchmark has no usable results at a commit; empty if it has some."""
        row, description = results.results.get(benchmark), self._benchmarks.get(benchmark)
        if row is None or description is None:
            return "not run"
        if row.version != description.version:
            return "measured by another version of the benchmark"
        # A result has only the values of its parameters; the names are those of the current benchmark.
        has_same_axes = len(row.params) == len(description.param_names)
        return "" if has_same_axes else "measured with other axes"

    def find_newest(self, benchmark: str) -> Document | None:
        """Return the results, without samples, of the newest commit with a value of a benchmark; None without one."""
        newest_first = sorted(self._dates, key=self._dates.__getitem__, reverse=True)
        for results in (document for commit in newest_first for document in self.load_environments(commit).values()):
            if any(point.value is not None for point in self.iter_points(results, benchmark)):
                return results
        return None

    def iter_points(self, results: Document, benchmark: str) -> Iterator[Point]:
        """Yield a benchmark's result of each configuration, in the order of its stored axes.

        Yield nothing if `explain_absence` returns a reason.
        """
        # Cached, because publishing compares a commit with several and reads its points dozens of times.
        by_benchmark = self._points.setdefault(results, {})
        if benchmark not in by_benchmark:
            by_benchmark[benchmark] = tuple(self._read_points(results, benchmark))
        return iter(by_benchmark[benchmark])

    def _read_points(self, results: Document, benchmark: str) -> Iterator[Point]:
        if self.explain_absence(results, benchmark):
            return
        names, commit = self._benchmarks[benchmark].param_names, results.commit_hash
        origins, runs = self.find_origins(commit, benchmark), self.list_runs(results, benchmark)[::-1]
        for params, value, samples in result_rows.iter_configurations(results.get_row(benchmark)):
            texts = ", ".join(params)
            counts: tuple[int, ...] = ()
            if samples:
                source_run = next((run for run in runs if record.has_selected(run, benchmark, texts)), {})
                counts = record.find_round_sizes(source_run, commit, benchmark, texts, len(samples))
            parameters = dict(zip(names, params, strict=True))
            yield Point(
                parameters, _finite_or_none(value), tuple(samples), value is None, origins.get(texts, ""), counts
            )

    def find_origins(self, commit_hash: str, benchmark: str) -> dict[str, str]:
        """Return parameters -> commit that measured them, for a benchmark's reused numbers at a commit."""
        if commit_hash not in self._origins:
            self._origins[commit_hash] = record.find_origins(self.results, self.machine, commit_hash, self.compiler)
        return self._origins[commit_hash].get(measurement_group(benchmark), {})

    def find_value(self, results: Document, benchmark: str, params: Mapping[str, str]) -> float | None:
        """Return the value of the first configuration with these parameters; None if it, or its value, is missing."""
        values = (
            point.value for point in self.iter_points(results, benchmark) if params.items() <= point.params.items()
        )
        return next(values, None)

    def list_runs(self, results: Document, benchmark: str | None = None) -> list[dict[str, Any]]:
        """Return the records of the runs that measured a commit, oldest first.

        The runs are those of the compiler of `results`, or all if no record names this compiler. With `benchmark`,
        return only the runs whose numbers of the benchmark are stored, or all if asv stored no start of the benchmark.
        There are several if GPUs shared the work, and none if `explain_absence` returns a reason.
        """
        if benchmark and self.explain_absence(results, benchmark):
            return []
        commit = results.commit_hash
        if commit not in self._runs:
            lines = record.read_records(self.results, self.machine, commit=commit)
            self._runs[commit] = [line for line in lines if commit in line["commits"]]
        all_runs = self._runs[commit]
        compiler = compilers.compiler_of_results(results.env_vars)
        own_runs = [
            run for run in all_runs if compilers.series_name(compilers.parse_version(run.get("nvcc"))) == compiler
        ]
        measuring_runs = own_runs or list(all_runs)  # earlier, results of all compilers had the same name
        began = results.results[benchmark].started_at if benchmark else None
        if benchmark is None or began is None:
            return measuring_runs
        return record.find_measuring_runs(measuring_runs, commit, benchmark, began)

    def list_gpus(self, *commits: Document, benchmark: str, point: Point | None = None) -> set[str | None]:
        """Return the UUIDs of the GPUs that measured a benchmark of some commits, or one of its configurations.

        None means that a run recorded no UUID.
        """
        texts = ", ".join(point.params.values()) if point else ""
        runs = (run for results in commits for run in self.list_runs(results, benchmark))
        selecting_runs = (run for run in runs if point is None or record.has_selected(run, benchmark, texts))
        return {(run.get("before") or {}).get("uuid") for run in selecting_runs}

    def find_last_run(self, results: Document, benchmark: str | None = None) -> dict[str, Any]:
        """Return the last record of `list_runs`; {} without one."""
        return (self.list_runs(results, benchmark) or [{}])[-1]

    def find_last_timed_run(self, results: Document) -> dict[str, Any]:
        """Return the record of the last run that timed a commit; without one, of the last run."""
        timed_runs = [run for name in self.list_benchmarks("time") for run in self.list_runs(results, name)]
        return next(
            (run for run in reversed(self.list_runs(results)) if run in timed_runs), self.find_last_run(results)
        )
