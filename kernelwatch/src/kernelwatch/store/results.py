"""The stored history of a machine: what each commit measured, and which run did."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from asv.benchmarks import Benchmarks
from asv.config import Config

from kernelwatch.store import folders, index, reading, record, rows
from kernelwatch.store.cubins import Cubins
from kernelwatch.store.graph import Graph
from kernelwatch.store.models import Document
from kernelwatch.store.points import Point
from kernelwatch.store.record import measurement
from kernelwatch.toolchain import releases as compilers


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


class History:
    """The stored results of one machine.

    Parameters
    ----------
    machine : str
        The machine's name.
    root : Path
        The folder that holds `asv.conf.json` and `results/`.
    config : object, optional
        Asv's configuration, where asv itself is at work and has loaded one; `root` then is the repository alone.
    compiler : str, optional
        The compiler whose results they are, as `kernelwatch.toolchain.releases` calls it; without one the default's,
        or those of the compiler that measured most, on a machine that never used the default.

    Raises
    ------
    FileNotFoundError
        There are no results of that machine.
    """

    def __init__(self, machine: str, root: Path, *, config: Any = None, compiler: str | None = None) -> None:
        self._root = root
        if config is None:
            config = Config.load(str(root / "asv.conf.json"))
            config.results_dir = str(folders.results(root / "results"))
        self._branches = config.branches
        #: Where the results of all machines are.
        self.results = folder = Path(config.results_dir)
        if machine not in (known := folders.machines(folder)):
            only = ", ".join(known) or "no machine"
            raise FileNotFoundError(
                f"{folder} holds no results of {machine!r}, only of {only}; run: asv run --record-samples HEAD^!"
            )
        self.machine = machine
        #: Where those of this machine are, and the records beside them; only to read.
        self.folder = folder / machine
        self._benchmarks = Benchmarks.load(config)
        self._files = index.list_results(self.folder)
        self._points: dict[tuple[Document, str], tuple[Point, ...]] = {}
        self._documents: dict[tuple[str, str], Document] = {}
        self._runs: dict[str, list[dict[str, Any]]] = {}
        self._cubins: dict[tuple[str, str | None], Cubins] = {}
        every = {(each.commit, each.environment): each for each in self._files.values()}
        measured = [compilers.compiler_of_results(entry.variables) for entry in every.values()]
        #: The compilers with results, as they are called; None is the default.
        self.compilers = list(dict.fromkeys(measured))
        self._choose(compiler or compilers.primary_compiler(measured))

    def _choose(self, compiler: str | None) -> None:
        #: The compiler whose results these are.
        self.compiler = compiler
        entries = [each for each in self._files.values() if compilers.compiler_of_results(each.variables) == compiler]
        self._dates = {entry.commit: entry.date for entry in entries}
        self._names: dict[str, list[str]] = {}
        for commit, environment in sorted({(entry.commit, entry.environment) for entry in entries}):
            self._names.setdefault(commit, []).append(environment)
        self._origins: dict[str, dict[str, dict[str, str]]] = {}
        #: How its commits follow one another.
        self.graph = Graph(self._root, self.dates(), self._branches)

    def by(self, compiler: str | None) -> History:
        """Return the same machine's results by another compiler."""
        other = copy.copy(self)
        other._choose(compiler)
        return other

    def benchmarks(self, kind: str) -> list[str]:
        """Names of the benchmarks of a kind, "time" or "track"."""
        return [name for name in sorted(self._benchmarks) if self.type(name) == kind]

    def commit(self, prefix: str) -> Document | None:
        """The results of the commit whose hash begins so, or None; of several Pythons that measured it, the last's."""
        commits = (commit for commit in self._dates if commit.startswith(prefix))
        return next((self.document(commit, self._names[commit][-1]) for commit in commits), None)

    def commits(self) -> list[str]:
        """The hashes of the measured commits, oldest first, each behind those that it follows."""
        return list(self.graph.commits)

    def dates(self) -> dict[str, int]:
        """When each measured commit was written, in milliseconds since 1970."""
        return dict(self._dates)

    def environment_names(self, commit_hash: str) -> list[str]:
        """The names of asv's environments that measured a commit, in their order."""
        return list(self._names.get(commit_hash, ()))

    def environments(self, commit_hash: str) -> dict[str, Document]:
        """The results of one commit, by the name of asv's environment, in the order of their names."""
        return {name: self.document(commit_hash, name) for name in self.environment_names(commit_hash)}

    def document(self, commit_hash: str, environment: str) -> Document:
        """Return the results of one commit in one of asv's environments; their files are read once."""
        key = commit_hash, environment
        if key not in self._documents:
            own = (path for path, entry in self._files.items() if (entry.commit, entry.environment) == key)
            (self._documents[key],) = reading.merge_files(self.folder, reading.read_files(own))
        return self._documents[key]

    def cubins(self, commit_hash: str, results: Document) -> Cubins:
        """Return the hashes of a commit's machine code by the compiler of some results; they are read once."""
        key = commit_hash, compilers.compiler_of_results(results.env_vars)
        if key not in self._cubins:
            self._cubins[key] = Cubins(self.folder, key[1], commit_hash)
        return self._cubins[key]

    def axes(self, benchmark: str) -> dict[str, list[str]]:
        """The axes of a benchmark today, the values of each parameter by its name; none before its first run."""
        described = self._benchmarks.get(benchmark, {"params": [], "param_names": []})
        values = [[text.strip("'") for text in axis] for axis in described["params"]]
        return dict(zip(described["param_names"], values, strict=True))

    def unit(self, benchmark: str) -> str:
        """The unit of a benchmark's values; empty if it has none."""
        return str(self._benchmarks[benchmark].get("unit") or "")

    def title(self, benchmark: str) -> str:
        """What a person calls a benchmark."""
        return str(self._benchmarks[benchmark].get("pretty_name") or benchmark)

    def type(self, benchmark: str) -> str:
        """Asv's type of a benchmark, for example "time"."""
        return str(self._benchmarks[benchmark]["type"])

    def values(self, results: Document, benchmark: str) -> list[float | None]:
        """One commit's values in the order of today's axes; None where a configuration has none; empty if not run."""
        if self.why_not_run(results, benchmark):
            return []
        axes = self._benchmarks[benchmark]["params"]
        stored = rows.on(results.row(benchmark), axes)["result"] or [None] * math.prod(map(len, axes))
        return list(map(_finite, stored))

    def why_not_run(self, results: Document, benchmark: str) -> str:
        """Empty if `points` yields the benchmark's configurations, else why it does not."""
        row, today = results.results.get(benchmark), self._benchmarks.get(benchmark)
        if row is None or today is None:
            return "not run"
        if row.version != today.get("version"):
            return "measured by another version of the benchmark"
        # A result stores the values of its parameters, and only the benchmark of today their names.
        named = len(row.params) == len(today["param_names"])
        return "" if named else "measured with other axes"

    def newest(self, benchmark: str) -> Document | None:
        """The results of the newest commit that has a value of `benchmark`, or None."""
        newest_first = sorted(self._dates, key=self._dates.__getitem__, reverse=True)
        for results in (each for commit in newest_first for each in self.environments(commit).values()):
            if any(point.value is not None for point in self.points(results, benchmark)):
                return results
        return None

    def points(self, results: Document, benchmark: str) -> Iterator[Point]:
        """The configurations of a benchmark on one commit, in the order of its axes; none if it was not run."""
        # A commit is compared with several: publishing asks for the same points dozens of times.
        if (known := self._points.get((results, benchmark))) is None:
            known = self._points[results, benchmark] = tuple(self._read(results, benchmark))
        return iter(known)

    def _read(self, results: Document, benchmark: str) -> Iterator[Point]:
        if self.why_not_run(results, benchmark):
            return
        names, commit = self._benchmarks[benchmark]["param_names"], results.commit_hash
        origins, runs = self.origins(commit, benchmark), self.runs_of(results, benchmark)[::-1]
        for params, value, samples in rows.each(results.row(benchmark)):
            texts, counts, took = ", ".join(params), tuple[int, ...](), dict[str, Any]()
            if samples:
                took = next((run for run in runs if record.selects(run, benchmark, texts)), took)
                counts = record.counts(took, commit, benchmark, texts, len(samples))
            named = dict(zip(names, params, strict=True))
            yield Point(named, _finite(value), tuple(samples), value is None, origins.get(texts, ""), counts)

    def origins(self, commit_hash: str, benchmark: str) -> dict[str, str]:
        """Configurations of a benchmark that were not measured at a commit -> the commit whose numbers they have."""
        if commit_hash not in self._origins:
            self._origins[commit_hash] = record.origins(self.results, self.machine, commit_hash, self.compiler)
        return self._origins[commit_hash].get(measurement(benchmark), {})

    def value(self, results: Document, benchmark: str, params: Mapping[str, str]) -> float | None:
        """The value of one configuration, or None; some parameters may be left out."""
        found = (point.value for point in self.points(results, benchmark) if params.items() <= point.params.items())
        return next(found, None)

    def runs_of(self, results: Document, benchmark: str | None = None) -> list[dict[str, Any]]:
        """The records of the runs that measured a commit, oldest first.

        Of a benchmark, those whose numbers are stored: several, if several GPUs shared the work; none if not run.
        """
        if benchmark and self.why_not_run(results, benchmark):
            return []
        commit = results.commit_hash
        if commit not in self._runs:
            lines = record.read(self.results, self.machine, commit=commit)
            self._runs[commit] = [line for line in lines if commit in line["commits"]]
        every = self._runs[commit]
        name = compilers.compiler_of_results(results.env_vars)
        own = [run for run in every if compilers.series_name(compilers.parse_version(run.get("nvcc"))) == name]
        ran = own or list(every)  # results of another compiler had the same name once
        began = results.results[benchmark].started_at if benchmark else None
        return ran if benchmark is None or began is None else record.wrote(ran, results.commit_hash, benchmark, began)

    def gpus(self, *commits: Document, benchmark: str = "", point: Point | None = None) -> set[str | None]:
        """The UUIDs of the GPUs that measured commits, or a benchmark of them, or one of its configurations.

        None stands for a run that said none. A fleet's records name the configurations of each run; of others, all
        that were under way share a benchmark.
        """
        texts = ", ".join(point.params.values()) if point else ""
        runs = (run for results in commits for run in self.runs_of(results, benchmark or None))
        found = (run for run in runs if point is None or record.selects(run, benchmark, texts))
        return {(run.get("before") or {}).get("uuid") for run in found}

    def run_of(self, results: Document, benchmark: str | None = None) -> dict[str, Any]:
        """The last of `runs_of`; empty if no record was kept."""
        return (self.runs_of(results, benchmark) or [{}])[-1]

    def timed_run_of(self, results: Document) -> dict[str, Any]:
        """The last run that took times of a commit; if none did, the last of all. Others may only have counted."""
        timed = [run for name in self.benchmarks("time") for run in self.runs_of(results, name)]
        return next((run for run in reversed(self.runs_of(results)) if run in timed), self.run_of(results))
