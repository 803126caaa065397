"""Which shards are left to measure, from what is stored: a function of data, which starts nothing."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kernelwatch import suite
from kernelwatch.store import reading, record, rows
from kernelwatch.store.reading import SUITE
from kernelwatch.suite import Kind

#: Series that a shard has at most. A worker that is killed loses its shard; asv begins anew for each.
LARGEST = 100


@dataclass(frozen=True)
class Shard:
    """What one worker measures in one run of asv."""

    commits: tuple[str, ...]
    #: Configurations of a benchmark by their texts, as asv writes them behind its name; none stands for all.
    selected: Mapping[str, Sequence[str]]
    #: UUID of the GPU that has measured these series before; any of the machine's kind if not given.
    device: str | None = None

    @property
    def patterns(self) -> list[str]:
        """The regular expressions that make `asv run --bench` select these configurations and no others."""
        return [
            rf"^{re.escape(name)}\((?:{'|'.join(map(re.escape, texts))})\)$" if texts else rf"^{re.escape(name)}(\(|$)"
            for name, texts in self.selected.items()
        ]


class Stored:
    """What a folder of results holds of a machine: what was measured of which commits, and which GPU did it last."""

    def __init__(self, folder: Path, machine: str) -> None:
        described, runs = folder / SUITE, record.read(folder, machine)
        suite = json.loads(reading.content(described)) if described.exists() else {}
        versions = {name: one["version"] for name, one in suite.items() if isinstance(one, dict)}
        self._measured: dict[tuple[str, str], set[str]] = {}
        devices: list[tuple[int, str, str, str]] = []
        for document in reading.documents(folder / machine):
            commit, found = document.commit_hash, {name: document.row(name) for name in document.results}
            for name, row in ((name, row) for name, row in found.items() if row["version"] == versions.get(name)):
                every = rows.texts(row["params"])
                # NaN is the value of what asv skipped, as of what it was not asked for: runs tell the two apart.
                known = {text for text, value in zip(every, row["result"] or every, strict=True) if value == value}
                own = record.wrote(runs, commit, name, row["started_at"])
                chosen = [set(run.get("selected", {}).get(name) or every) for run in own]
                self._measured[commit, name] = known.union(*(chosen or [set(every)]))
                for run, texts in zip(own, chosen, strict=True):
                    uuid = run.get("before", {}).get("uuid")
                    devices += [(runs.index(run), name, text, uuid) for text in (known & texts if uuid else ())]
        self._last = {(name, text): uuid for _, name, text, uuid in sorted(devices)}

    def has(self, commit: str, benchmark: str) -> set[str]:
        """The configurations of a benchmark that were measured at a commit."""
        return self._measured.get((commit, benchmark), set())

    def last(self) -> dict[tuple[str, str], str]:
        """Benchmark and configuration -> UUID of the GPU that measured it last."""
        return self._last


class Series(NamedTuple):
    """One timed configuration, over all commits; those that share inputs and references are neighbours when sorted."""

    benchmark: str
    dtype: str
    useful_bytes: int
    configuration: str

    @property
    def seconds(self) -> float:
        """Roughly what it takes a commit (docs/evidence/fleet.md, "What a series costs")."""
        return 0.10 + 0.12e-9 * self.useful_bytes


def texts(benchmark: str) -> list[str]:
    """Return the configurations of a benchmark, as asv writes them."""
    return [", ".join(map(repr, point.values())) for point in suite.BENCHMARKS[benchmark][1].points()]


def series() -> Iterator[Series]:
    """Yield all series that are timed."""
    for name, (kind, sweep) in suite.BENCHMARKS.items():
        if kind is Kind.TIMED:
            for text, point in zip(texts(name), sweep.points(), strict=True):
                yield Series(name, sweep.launch(point).dtype, suite.useful_bytes(name, point) or 0, text)


def select(chosen: Iterable[Series]) -> dict[str, tuple[str, ...]]:
    """Return the configurations of series: their times, and their ratios to copies."""
    found: dict[str, list[str]] = {}
    for one in chosen:
        for name in {one.benchmark: None, suite.control(one.benchmark): None}:
            if name in suite.BENCHMARKS:
                found.setdefault(name, []).append(one.configuration)
    return {name: tuple(each) for name, each in found.items()}


def todo(stored: Stored, commits: Sequence[str], devices: Sequence[str], bench: str = "") -> list[Shard]:
    """Return what is left to measure of commits: what no GPU has a part in, and once that is stored, the times.

    Without `devices`, the UUIDs of the machine's GPUs, all is measured commit by commit. The regular expression `bench`
    is found in the names of the benchmarks that are meant.
    """
    # What is compiled comes first: the GPUs need it.
    return _by_commit(stored, commits, devices, bench) or _by_series(stored, commits, devices, bench)


def _by_commit(stored: Stored, commits: Sequence[str], devices: Sequence[str], bench: str) -> list[Shard]:
    kinds = (Kind.COUNTED, Kind.COMPILED) if devices else tuple(Kind)
    names = [name for name, (kind, _) in suite.BENCHMARKS.items() if kind in kinds and re.search(bench, name)]
    lacking = [{name: () for name in names if set(texts(name)) - stored.has(commit, name)} for commit in commits]
    return [Shard((commit,), each) for commit, each in zip(commits, lacking, strict=True) if each]


def _by_series(stored: Stored, commits: Sequence[str], devices: Sequence[str], bench: str) -> list[Shard]:
    """Return some series over all commits each, for one GPU: that which measured them before, if it is still there."""
    last = stored.last()
    #: Commits left, and the GPU that goes on -> series.
    left: dict[tuple[tuple[str, ...], str | None], list[Series]] = defaultdict(list)
    for one in sorted(each for each in series() if re.search(bench, each.benchmark)):
        names = select([one])
        missing = tuple(each for each in commits if any(one.configuration not in stored.has(each, n) for n in names))
        if missing:
            device = last.get((one.benchmark, one.configuration))
            left[missing, device if device in devices else None].append(one)
    return [
        Shard(missing, select(part), device)
        for (missing, device), members in left.items()
        for part in cut(members, 1 if device else len(devices))
    ]


def cut(chosen: Iterable[Series], devices: int) -> list[list[Series]]:
    """Cut series into parts: as many for each device, which take about as long.

    Series that share inputs are neighbours, so no more than two parts have some of them.
    """
    ordered = sorted(chosen)
    ends = list(itertools.accumulate(one.seconds for one in ordered))
    for count in itertools.count(devices, devices):
        parts: list[list[Series]] = [[] for _ in range(count)]
        for one, end in zip(ordered, ends, strict=True):
            parts[int(count * (end - one.seconds / 2) / ends[-1])].append(one)
        if max(map(len, parts)) <= LARGEST:
            break
    return [part for part in parts if part]
