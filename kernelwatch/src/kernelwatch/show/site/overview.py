"""What Overview shows: of each kernel and machine a number over the commits, what it moves, and the newest verdict."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

from kernelwatch.show.site import configurations
from kernelwatch.show.site.changes import COUNTS, counted
from kernelwatch.store.cubins import CubinHashes
from kernelwatch.store.points import Point
from kernelwatch.store.results import History
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import Kind
from kernelwatch.suite.metrics import TOTALS
from kernelwatch.suite.sweep import Sweep
from kernelwatch.workflow.load_review import describe_configuration
from kernelwatch.workflow.steps import find_step, list_measured
from ptxcount.counting.transactions import SECTOR

#: By commit and benchmark, the configurations' values in the order of the axes.
Values = Mapping[str, Mapping[str, list[float | None]]]

#: Numbers by commit, oldest first.
Series = list[tuple[str, float]]


@dataclass(frozen=True)
class Shown:
    """A machine on the pages: its history, its values, and its changes, oldest first."""

    history: History
    values: Values
    changes: Sequence[dict[str, Any]]

    @cached_property
    def cubins(self) -> CubinHashes:
        """The hashes of its machine code."""
        return CubinHashes(self.history.folder, self.history.compiler)

    @cached_property
    def compared(self) -> frozenset[str]:
        """The kernels of which the newest published commit and an ancestor measured a configuration."""
        newest = self.history.graph.line[-1:]
        step = find_step(self.history, newest[0], partial(list_measured, self.history)) if newest else None
        names = set[str]().union(*step.shared.values()) if step else set[str]()
        by_benchmark = {name.partition("(")[0] for name in names}
        return frozenset(
            describe_configuration(benchmark, params).kernel
            for benchmark in by_benchmark
            for params in configurations.combinations(self.history.find_axes(benchmark))
            if Point(params, None).format_name(benchmark) in names
        )

    @cached_property
    def times(self) -> int:
        """How many times it has of all commits."""
        timed = set(self.history.list_benchmarks("time"))
        return sum(len(row) for rows in self.values.values() for name, row in rows.items() if name in timed)

    def series(self, params: Mapping[str, str], *benchmarks: str) -> Series:
        """Return the sum of some benchmarks at a configuration, of the published commits that have all of them."""
        axes = self.history.find_axes(benchmarks[0]) if benchmarks else {}
        every = list(itertools.product(*axes.values()))
        wanted = tuple(params.get(axis, "") for axis in axes)
        if wanted not in every:
            return []
        at, found = every.index(wanted), []
        for commit in self.history.graph.line:
            rows = [self.values[commit].get(benchmark) for benchmark in benchmarks]
            numbers = [row[at] for row in rows if row]
            if len(numbers) == len(benchmarks) and None not in numbers:
                found.append((commit, float(sum(number for number in numbers if number is not None))))
        return found


class _Configuration(NamedTuple):
    """The configuration that tells most of a kernel."""

    benchmark: str
    sweep: Sweep
    params: dict[str, str]

    @property
    def useful_bytes(self) -> int | None:
        return registry.find_useful_bytes(self.benchmark, self.params)

    @property
    def totals(self) -> list[str]:
        """The benchmarks that together are all sectors of global memory that its launches move."""
        known = [
            each for each in registry.metric_names(self.sweep) if each in TOTALS and TOTALS[each].unit == "sectors"
        ]
        return [f"track_counted.{self.sweep.name}.track_{each}" for each in known if "local" not in each]


def rows(machines: Mapping[str, Shown]) -> Iterator[dict[str, Any]]:
    """Yield a row for each kernel that any machine timed or counted, in the suite's order: its cells by machine."""
    timed, counts = (_configurations(kind) for kind in (Kind.TIMED, Kind.COUNTED))
    for kernel in dict.fromkeys([*counts, *timed]):
        sectors = {name: _sectors(shown, counts.get(kernel)) for name, shown in machines.items()}
        moved = dict(itertools.chain(*sectors.values()))  # exact, and alike on all machines
        cells = {}
        for name, shown in machines.items():
            cell = _timed(shown, timed.get(kernel)) or _counted(sectors[name], counts.get(kernel))
            if cell:
                last = moved.get(cell["series"][-1][0])  # an earlier commit's would stand beside a newer time
                needed = counts[kernel].useful_bytes if kernel in counts else None
                ratio = SECTOR * last / needed if needed and last else None
                cells[name] = {**cell, **_state(shown, kernel, cell, moved), "moved": ratio}
        if cells:
            known = registry.current_suite().kernels().get(kernel)
            yield {"kernel": kernel, "verified": known is None or known.reference is not None, "cells": cells}


def _configurations(wanted: Kind) -> dict[str, _Configuration]:
    """Of each kernel that of the first benchmark that tells of it."""
    found: dict[str, _Configuration] = {}
    for benchmark, (kind, sweep) in registry.current_suite().benchmarks.items():
        if kind is not wanted or sweep.isolated or sweep is registry.current_suite().copy:
            continue
        for kernel in filter(
            None, map(str, sweep.axes.get("kernel", [sweep.kernel]))
        ):  # the library's own copy is none
            params = {axis: str(value) for axis, value in sweep.summary_point().items()}
            params |= {"kernel": kernel} if "kernel" in params else {}
            found.setdefault(kernel, _Configuration(benchmark, sweep, params))
    return found


def _timed(shown: Shown, of: _Configuration | None) -> dict[str, Any] | None:
    """Its times in copies of the same bytes; where no copy was timed, its times."""
    if of is None:
        return None
    control = registry.control_benchmark(of.benchmark)
    copies = shown.series(of.params, control)
    series = copies or shown.series(of.params, of.benchmark)
    if not series:
        return None
    useful, flops = of.useful_bytes, registry.find_flops(of.benchmark, of.params)
    # What computes more than it moves is not limited by memory, as a copy is.
    share = 1 / copies[-1][1] if copies and not (flops and useful and flops > useful) else None
    linked = {"benchmark": control if copies else of.benchmark, "params": of.params}
    return {"unit": "copies" if copies else "s", "series": series, "share": share, "of": linked}


def _counted(series: Series, of: _Configuration | None) -> dict[str, Any] | None:
    if of is None or not series:
        return None
    last = SECTOR * series[-1][1]
    share = min(1.0, of.useful_bytes / last) if of.useful_bytes and last else None
    linked = {"benchmark": of.totals[0], "params": of.params}
    return {"unit": "sectors", "series": series, "share": share, "of": linked}


def _sectors(shown: Shown, of: _Configuration | None) -> Series:
    known = set(shown.history.list_benchmarks("track"))
    return shown.series(of.params, *(name for name in of.totals if name in known)) if of else []


def _state(shown: Shown, kernel: str, cell: Mapping[str, Any], moved: Mapping[str, float]) -> dict[str, Any]:
    """The newest commit's verdict, and the commits at which machine code or sectors changed."""
    newest, commits = shown.history.graph.line[-1], [commit for commit, _ in cell["series"]]
    change = next((each for each in reversed(shown.changes) if each["head"] == newest), None)
    own = [each for each in change["groups"] if each["kernel"] == kernel and not each["elsewhere"]] if change else []
    tally = Counter({name: sum(group[name] for group in own) for name in COUNTS})
    is_judged = commits[-1] == newest and kernel in shown.compared
    marks: dict[str, list[str]] = defaultdict(list)
    sectors = [(commit, moved[commit]) for commit in commits if commit in moved]
    for what, known in (("sectors", sectors), ("machine code", _machine_code(shown, cell["of"], commits))):
        for commit in _changed(known):
            marks[commit].append(f"{what} changed")
    return {"verdict": counted(tally)["verdict"] if is_judged or own else None, "newest": commits[-1], "marks": marks}


def _machine_code(shown: Shown, of: Mapping[str, Any], commits: Sequence[str]) -> list[tuple[str, object]]:
    """The hash of a configuration's machine code by commit, for the architecture that the machine runs."""
    name, newest = registry.find_code_name(of["benchmark"], of["params"]), shown.history.find_commit(commits[-1])
    arch = (shown.history.find_last_timed_run(newest).get("arch") if newest else None) or next(
        iter(shown.cubins.archs), ""
    )
    found = ((commit, shown.cubins.find_cubin_hash(commit, arch, name or "")) for commit in commits)
    return [(commit, hashed) for commit, hashed in found if hashed]


def _changed(known: Iterable[tuple[str, object]]) -> Iterator[str]:
    """The commits that have another value than the one before."""
    for (_, before), (commit, value) in itertools.pairwise(known):
        if before != value:
            yield commit
