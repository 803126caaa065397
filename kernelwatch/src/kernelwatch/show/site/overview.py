"""The rows of Overview: for each kernel and machine a number by commit, the bytes moved, and the newest verdict."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from kernelwatch.config.project_root import ROOT
from kernelwatch.show.site import words
from kernelwatch.show.site.changes import COUNTS, summarize_counts
from kernelwatch.show.site.measured import MeasuredCommit
from kernelwatch.show.site.packed import count_numbers, read_number
from kernelwatch.store.cubins import CubinHashes
from kernelwatch.store.default_thresholds import DEFAULT_THRESHOLDS
from kernelwatch.store.results import History
from kernelwatch.suite import launch_facts, registry
from kernelwatch.suite.benchmark_names import Kind, copy_ratio_name
from kernelwatch.suite.metrics import GLOBAL_SECTORS
from kernelwatch.suite.sweep import Sweep
from kernelwatch.workflow.load_review import load_thresholds
from ptxcount.counting.transactions import SECTOR

#: (commit, its number), oldest first.
Series = list[tuple[str, float]]


@dataclass(frozen=True)
class ShownMachine:
    """A machine of the site: its history, and the data of its commits, oldest first."""

    history: History
    commits: Mapping[str, MeasuredCommit]
    root: Path = ROOT

    @cached_property
    def changes(self) -> list[dict[str, Any]]:
        """The changes of all commits that have a measured ancestor, oldest first."""
        return [commit.change for commit in self.commits.values() if commit.change is not None]

    @cached_property
    def cubins(self) -> CubinHashes:
        """The hashes of the machine code of each commit."""
        return CubinHashes(self.history.folder, self.history.compiler)

    @cached_property
    def noise(self) -> Mapping[float, float]:
        """Minimum seconds of a class of durations -> threshold at the newest published commit, or else the default."""
        newest = self.history.graph.line[-1:]
        return load_thresholds(self.history, newest[0], self.root).by_duration if newest else dict(DEFAULT_THRESHOLDS)

    @cached_property
    def time_count(self) -> int:
        """The number of stored times over all commits."""
        timed = set(self.history.list_benchmarks("time"))
        rows = (row for commit in self.commits.values() for name, row in commit.values.items() if name in timed)
        return sum(map(count_numbers, rows))

    def sum_series(self, params: Mapping[str, str], *benchmarks: str) -> Series:
        """Return the sum of several benchmarks' values of one configuration, by published commit.

        Commits that lack a value are left out, unless all stored values of its benchmark are 0: a later version of the
        suite may have added this metric.
        """
        axes = self.history.find_axes(benchmarks[0]) if benchmarks else {}
        combinations = list(itertools.product(*axes.values()))
        configuration = tuple(params.get(axis, "") for axis in axes)
        if configuration not in combinations:
            return []
        columns = [self._read_column(benchmark, combinations.index(configuration)) for benchmark in benchmarks]
        required = [column for column in columns if any(column.values())]
        return [
            (commit, float(sum(column.get(commit) or 0 for column in columns)))
            for commit in self.history.graph.line
            if all(commit in column for column in required) and any(commit in column for column in columns)
        ]

    def _read_column(self, benchmark: str, position: int) -> dict[str, float]:
        """Return published commit -> the benchmark's value of a configuration, unless it is missing."""
        column: dict[str, float] = {}
        for commit in self.history.graph.line:
            if row := self.commits[commit].values.get(benchmark):  # an unknown benchmark has no row, and no type
                value = read_number(row, position, is_time=self.history.get_type(benchmark) == "time")
                if value is not None:
                    column[commit] = value
        return column


class _SummaryConfiguration(NamedTuple):
    """The configuration whose number represents a kernel on Overview."""

    benchmark: str
    sweep: Sweep
    params: dict[str, str]

    @property
    def useful_bytes(self) -> int | None:
        return launch_facts.find_useful_bytes(self.benchmark, self.params)

    @property
    def sector_benchmarks(self) -> list[str]:
        return [f"track_counted.{self.sweep.name}.track_{metric}" for metric in GLOBAL_SECTORS]


def iter_rows(machines: Mapping[str, ShownMachine]) -> Iterator[dict[str, Any]]:
    """Yield a row for each timed or counted kernel, in the suite's order, with a cell for each machine."""
    timed, counts = (_select_configurations(kind) for kind in (Kind.TIMED, Kind.COUNTED))
    for kernel in dict.fromkeys([*counts, *timed]):
        sectors = {name: _sum_sectors(machine, counts.get(kernel)) for name, machine in machines.items()}
        sectors_by_commit = dict(itertools.chain(*sectors.values()))  # counts are exact, so equal on all machines
        cells = {}
        for name, machine in machines.items():
            cell = _describe_times(machine, timed.get(kernel)) or _describe_sectors(sectors[name], counts.get(kernel))
            if cell:
                commits = [commit for commit, _ in cell["series"]]
                last = sectors_by_commit.get(commits[-1])
                needed = counts[kernel].useful_bytes if kernel in counts else None
                cells[name] = {
                    **cell,
                    "verdict": _find_verdict(machine, kernel, commits[-1]),
                    "newest": commits[-1],
                    "marks": _find_marks(machine, cell["kernel_configuration"], commits, sectors_by_commit),
                    "moved": SECTOR * last / needed if needed and last else None,
                }
        if cells:
            definition = registry.current_suite().kernels().get(kernel)
            yield {"kernel": kernel, "verified": launch_facts.is_verified(definition), "cells": cells}


def _select_configurations(kind: Kind) -> dict[str, _SummaryConfiguration]:
    """Return kernel -> its configuration in summaries, of the first benchmark of a kind that measures it."""
    selected: dict[str, _SummaryConfiguration] = {}
    for benchmark, (benchmark_kind, sweep) in registry.current_suite().benchmarks.items():
        if benchmark_kind is not kind or sweep.isolated or sweep is registry.current_suite().copy:
            continue
        for kernel in filter(None, map(str, sweep.axes.get("kernel", [sweep.kernel]))):
            params = {axis: str(value) for axis, value in sweep.summary_point().items()}
            if "kernel" in params:
                params["kernel"] = kernel
            selected.setdefault(kernel, _SummaryConfiguration(benchmark, sweep, params))
    return selected


def _describe_times(machine: ShownMachine, configuration: _SummaryConfiguration | None) -> dict[str, Any] | None:
    """Return the cell of a kernel's times, in copies if the copy ratio was measured, else in seconds."""
    if configuration is None:
        return None
    copy_ratio = copy_ratio_name(configuration.benchmark)
    copies = machine.sum_series(configuration.params, copy_ratio)
    series = copies or machine.sum_series(configuration.params, configuration.benchmark)
    if not series:
        return None
    useful, flops = configuration.useful_bytes, launch_facts.find_flops(configuration.benchmark, configuration.params)
    # A kernel with more operations than useful bytes is not limited by memory, so a copy is no measure for it.
    share = 1 / copies[-1][1] if copies and not (flops and useful and flops > useful) else None
    link = {"benchmark": copy_ratio if copies else configuration.benchmark, "params": configuration.params}
    return {"unit": "copies" if copies else "s", "series": series, "share": share, "kernel_configuration": link}


def _describe_sectors(series: Series, configuration: _SummaryConfiguration | None) -> dict[str, Any] | None:
    if configuration is None or not series:
        return None
    last = SECTOR * series[-1][1]
    share = min(1.0, configuration.useful_bytes / last) if configuration.useful_bytes and last else None
    link = {"benchmark": configuration.sector_benchmarks[0], "params": configuration.params}
    return {"unit": "sectors", "series": series, "share": share, "kernel_configuration": link}


def _sum_sectors(machine: ShownMachine, configuration: _SummaryConfiguration | None) -> Series:
    if configuration is None:
        return []
    stored = set(machine.history.list_benchmarks("track"))
    return machine.sum_series(configuration.params, *filter(stored.__contains__, configuration.sector_benchmarks))


def _find_verdict(machine: ShownMachine, kernel: str, last_measured: str) -> str | None:
    """Return the verdict on a kernel at the newest published commit; None if it was not compared there."""
    newest = machine.history.graph.line[-1]
    change = next((change for change in reversed(machine.changes) if change["head"] == newest), None)
    if change is None:
        return None
    groups = [group for group in words.list_own_groups(change) if group["kernel"] == kernel]
    if not groups and (last_measured != newest or kernel not in change["compared_kernels"]):
        return None
    verdict: str = summarize_counts({name: sum(group[name] for group in groups) for name in COUNTS})["verdict"]
    return verdict


def _find_marks(
    machine: ShownMachine, link: Mapping[str, Any], commits: Sequence[str], sectors_by_commit: Mapping[str, float]
) -> dict[str, dict[str, Any]]:
    """Return a mark for each commit at which machine code or sectors changed.

    The band of a mark begins at `since`, the last commit measured before it. Without commits between, `since` is the
    marked commit.
    """
    positions = machine.history.graph.positions
    marks: dict[str, dict[str, Any]] = {}
    sectors = [(commit, sectors_by_commit[commit]) for commit in commits if commit in sectors_by_commit]
    for subject, series in (("sectors", sectors), ("machine code", _list_code_hashes(machine, link, commits))):
        for (previous, previous_value), (commit, value) in itertools.pairwise(series):
            if value != previous_value:
                mark = marks.setdefault(commit, {"since": commit, "texts": []})
                span = words.format_span(positions[commit] - positions[previous], previous)
                mark["texts"].append(" ".join(filter(None, [subject, "changed", span])))
                mark["since"] = min(mark["since"], previous if span else commit, key=positions.__getitem__)
    return marks


def _list_code_hashes(
    machine: ShownMachine, link: Mapping[str, Any], commits: Sequence[str]
) -> list[tuple[str, object]]:
    name = launch_facts.find_code_name(link["benchmark"], link["params"])
    arch = machine.commits[commits[-1]].run["arch"] or next(iter(machine.cubins.archs), "")
    hashes = ((commit, machine.cubins.find_cubin_hash(commit, arch, name or "")) for commit in commits)
    return [(commit, code_hash) for commit, code_hash in hashes if code_hash]
