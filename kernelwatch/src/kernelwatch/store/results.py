"""The stored history of a machine: what each commit measured, and which run did."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asv.benchmarks import Benchmarks
from asv.config import Config

from kernelwatch.config.project_root import ROOT
from kernelwatch.store import folders, reading, record, rows
from kernelwatch.store.graph import Graph
from kernelwatch.store.models import Document
from kernelwatch.store.record import control, measurement
from kernelwatch.toolchain import releases as compilers


@dataclass(frozen=True)
class Point:
    """One configuration's result: its parameters by name, and what asv stored."""

    params: dict[str, str]
    #: Lower is better; None if it failed, was skipped, or is not finite.
    value: float | None
    #: The recorded samples, those of one round after those of another; none if asv did not keep them.
    samples: tuple[float, ...] = ()
    #: Whether there is no value because the benchmark failed, not because it was skipped.
    failed: bool = False
    #: The commit that it was measured at; empty if at its own. All that it depends on was the same there.
    origin: str = ""
    #: How many of the samples each round took.
    counts: tuple[int, ...] = ()

    @property
    def rounds(self) -> list[tuple[float, ...]]:
        """The samples by round.

        asv stores those of one round after those of another. Files of before 2026-11-21 16:00 hold 10 to 20 a
        round, plain asv does not say: the halves stand for two then, and a median does not mind a few that are wrong.
        """
        count = len(self.samples)
        known = self.counts if sum(self.counts) == count else (-(-count // 2), count // 2)
        ends = itertools.accumulate(known)
        return [self.samples[end - each : end] for end, each in zip(ends, known, strict=True) if each]

    def name(self, benchmark: str) -> str:
        """The configuration as asv's tables call it, without the quotes around texts."""
        return f"{benchmark}({', '.join(self.params.values())})" if self.params else benchmark


#: Module of `benchmarks` -> what its numbers are called. They are exact; those of any other module vary.
EXACT = {record.COUNTED: "counted", record.COMPILED: "compiled"}
TIMED = "timed"
KINDS = (TIMED, *EXACT.values())


def kind(benchmark: str) -> str:
    """Return what a benchmark's numbers are: one of KINDS."""
    return EXACT.get(benchmark.partition(".")[0], TIMED)


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
        Asv's configuration, where asv itself is at work and has loaded one; `root` then plays no part.
    compiler : str, optional
        The compiler whose results they are, as `kernelwatch.toolchain.releases` calls it; without one the default's,
        or those of the compiler that measured most, on a machine that never used the default.

    Raises
    ------
    FileNotFoundError
        There are no results of that machine.
    """

    def __init__(self, machine: str, root: Path = ROOT, *, config: Any = None, compiler: str | None = None) -> None:
        self._root = root if config is None else ROOT
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
        self._every = list(reading.documents(self.folder))
        self._points: dict[tuple[Document, str], tuple[Point, ...]] = {}
        measured = [compilers.compiler_of_results(results.env_vars) for results in self._every]
        #: The compilers with results, as they are called; None is the default.
        self.compilers = list(dict.fromkeys(measured))
        self._runs: dict[str, list[dict[str, Any]]] = {}
        #: The records of its runs, oldest first.
        self.runs = record.read(folder, machine)
        for run in self.runs:
            for commit in run["commits"]:
                self._runs.setdefault(commit, []).append(run)
        self._choose(compiler or compilers.primary_compiler(measured))

    def _choose(self, compiler: str | None) -> None:
        #: The compiler whose results these are.
        self.compiler = compiler
        self._commits = [each for each in self._every if compilers.compiler_of_results(each.env_vars) == compiler]
        self._environments: dict[str, dict[str, Document]] = {}
        for results in sorted(self._commits, key=lambda results: str(results.env_name)):
            self._environments.setdefault(results.commit_hash, {})[str(results.env_name)] = results
        self._origins = record.origins(self.folder.parent, self.machine, compiler)
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
        found = (each for commit, each in self._environments.items() if commit.startswith(prefix))
        return next((list(environments.values())[-1] for environments in found), None)

    def commits(self) -> list[str]:
        """The hashes of the measured commits, oldest first, each behind those that it follows."""
        return list(self.graph.commits)

    def dates(self) -> dict[str, int]:
        """When each measured commit was written, in milliseconds since 1970."""
        return {results.commit_hash: results.date for results in self._commits}

    def environments(self, commit_hash: str) -> dict[str, Document]:
        """The results of one commit, by the name of asv's environment, in the order of their names."""
        return dict(self._environments.get(commit_hash, {}))

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
        has_value = (
            each for each in self._commits if any(one.value is not None for one in self.points(each, benchmark))
        )
        return max(has_value, key=lambda results: results.date, default=None)

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
        return self._origins.get((commit_hash, measurement(benchmark)), {})

    def times(self, results: Document) -> Iterator[tuple[str, Point, float | None]]:
        """Every time of one commit: the benchmark's name, the configuration, and its ratio to a copy if it has one."""
        for benchmark in self.benchmarks("time"):
            copies = {tuple(each.params.items()): each.value for each in self.points(results, control(benchmark))}
            for point in self.points(results, benchmark):
                if point.value is not None:
                    yield benchmark, point, copies.get(tuple(point.params.items()))

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
        every = self._runs.get(results.commit_hash, [])
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
