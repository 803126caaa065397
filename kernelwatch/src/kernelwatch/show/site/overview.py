"""What Overview shows: of each kernel and machine a number over the commits, what it moves, and the newest verdict."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kernelwatch import suite
from kernelwatch.metrics import METRICS
from kernelwatch.show.site.changes import COUNTS, counted
from kernelwatch.store.cubins import Cubins
from kernelwatch.store.results import History
from kernelwatch.suite import Kind
from kernelwatch.sweep import Sweep
from ptxcount.transactions import SECTOR

#: By commit and benchmark, the configurations' values in the order of the axes.
Values = Mapping[str, Mapping[str, list[float | None]]]

#: Numbers of the newest commit, by commit, oldest first.
Series = list[tuple[str, float]]


@dataclass(frozen=True)
class Shown:
    """A machine on the pages: its history, its values, and its changes, oldest first."""

    history: History
    values: Values
    changes: Sequence[dict[str, Any]]

    @cached_property
    def cubins(self) -> Cubins:
        """The hashes of its machine code."""
        return Cubins(self.history.folder, self.history.compiler)

    @cached_property
    def times(self) -> int:
        """How many times it has of all commits."""
        timed = set(self.history.benchmarks("time"))
        return sum(len(row) for rows in self.values.values() for name, row in rows.items() if name in timed)

    def series(self, params: Mapping[str, str], *benchmarks: str) -> Series:
        """Return the sum of some benchmarks at a configuration, of the published commits that have all of them."""
        axes = self.history.axes(benchmarks[0]) if benchmarks else {}
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


def rows(machines: Mapping[str, Shown]) -> Iterator[dict[str, Any]]:
    """Yield a row for each kernel that any machine timed or counted, in the suite's order: its cells by machine."""
    timed, counts = (_sweeps(kind) for kind in (Kind.TIMED, Kind.COUNTED))
    for kernel in dict.fromkeys([*counts, *timed]):
        moved: dict[str, float] = {}
        for shown in machines.values():  # exact, and alike on all machines
            moved |= dict(_sectors(shown, *counts[kernel]) if kernel in counts else ())
        cells = {}
        for name, shown in machines.items():
            cell = _timed(shown, *timed[kernel]) if kernel in timed else None
            cell = cell or (_counted(shown, *counts[kernel]) if kernel in counts else None)
            if cell:
                needed, last = _needed(*counts[kernel]) if kernel in counts else None, _last(moved, cell)
                ratio = SECTOR * last / needed if needed and last else None
                cells[name] = {**cell, **_state(shown, kernel, cell, moved), "moved": ratio}
        if cells:
            verified = suite.kernel(kernel).reference is not None if kernel in suite.current().kernels() else True
            yield {"kernel": kernel, "verified": verified, "cells": cells}


def _sweeps(wanted: Kind) -> dict[str, tuple[str, Sweep, dict[str, str]]]:
    """Of each kernel the first benchmark that tells of it, its sweep, and the configuration that tells most."""
    found: dict[str, tuple[str, Sweep, dict[str, str]]] = {}
    for benchmark, (kind, sweep) in suite.BENCHMARKS.items():
        if kind is not wanted or sweep.isolated or sweep is suite.DEVICE_COPY:
            continue
        for kernel in map(str, sweep.axes.get("kernel", [sweep.kernel])):
            params = {axis: str(value) for axis, value in sweep.chosen().items()}
            params |= {"kernel": kernel} if "kernel" in params else {}
            if kernel:  # the library's own copy is none
                found.setdefault(kernel, (benchmark, sweep, params))
    return found


def _timed(shown: Shown, benchmark: str, _: Sweep, params: dict[str, str]) -> dict[str, Any] | None:
    """Its times in copies of the same bytes; where no copy was timed, its times."""
    copies = shown.series(params, suite.control(benchmark))
    series = copies or shown.series(params, benchmark)
    if not series:
        return None
    useful, flops = suite.useful_bytes(benchmark, params), suite.flops(benchmark, params)
    # What computes more than it moves is not limited by memory, as a copy is.
    share = 1 / copies[-1][1] if copies and not (flops and useful and flops > useful) else None
    of = {"benchmark": suite.control(benchmark) if copies else benchmark, "params": params}
    return {"unit": "copies" if copies else "s", "series": series, "share": share, "of": of}


def _counted(shown: Shown, benchmark: str, sweep: Sweep, params: dict[str, str]) -> dict[str, Any] | None:
    series, needed = _sectors(shown, benchmark, sweep, params), _needed(benchmark, sweep, params)
    if not series:
        return None
    last = SECTOR * series[-1][1]
    share = min(1.0, needed / last) if needed and last else None
    named = next(iter(_totals(sweep)))
    return {"unit": "sectors", "series": series, "share": share, "of": {"benchmark": named, "params": params}}


def _totals(sweep: Sweep) -> list[str]:
    """The benchmarks that together are all sectors of global memory that its launches move."""
    every = (f"track_counted.{sweep.name}.track_{metric}" for metric in suite.metrics(sweep) if "local" not in metric)
    return [name for name in every if METRICS[name.rpartition(".track_")[2]].unit.startswith("sectors")]


def _sectors(shown: Shown, _: str, sweep: Sweep, params: dict[str, str]) -> Series:
    known = set(shown.history.benchmarks("track"))
    return shown.series(params, *(name for name in _totals(sweep) if name in known))


def _needed(benchmark: str, _: Sweep, params: dict[str, str]) -> int | None:
    return suite.useful_bytes(benchmark, params)


def _last(moved: Mapping[str, float], cell: Mapping[str, Any]) -> float | None:
    """What it moves at the newest commit of a cell that is counted."""
    return next((moved[commit] for commit, _ in reversed(cell["series"]) if commit in moved), None)


def _state(shown: Shown, kernel: str, cell: Mapping[str, Any], moved: Mapping[str, float]) -> dict[str, Any]:
    """The newest commit's verdict, and the commits at which machine code or sectors changed."""
    newest = shown.history.graph.line[-1]
    commits = [commit for commit, _ in cell["series"]]
    change = next((each for each in reversed(shown.changes) if each["head"] == newest), None)
    own = [each for each in change["groups"] if each["kernel"] == kernel and not each["elsewhere"]] if change else []
    tally = Counter[str]()
    for group in own:
        tally.update({name: group[name] for name in COUNTS})
    is_judged = change is not None and change["base"] is not None and commits[-1] == newest
    marks: dict[str, list[str]] = {}
    for commit in _changed([(each, moved[each]) for each in commits if each in moved]):
        marks.setdefault(commit, []).append("sectors changed")
    for commit in _changed(_machine_code(shown, cell["of"], commits)):
        marks.setdefault(commit, []).append("machine code changed")
    return {
        "verdict": counted(tally)["verdict"] if is_judged or own else None,
        "newest": commits[-1],
        "marks": marks,
    }


def _machine_code(shown: Shown, of: Mapping[str, Any], commits: Sequence[str]) -> list[tuple[str, str]]:
    """The hash of a configuration's machine code by commit, for the architecture that the machine runs."""
    name, newest = suite.code_name(of["benchmark"], of["params"]), shown.history.commit(commits[-1])
    arch = (shown.history.timed_run_of(newest).get("arch") if newest else None) or next(iter(shown.cubins.archs), "")
    found = ((commit, shown.cubins.sha256(commit, arch, name or "")) for commit in commits)
    return [(commit, hashed) for commit, hashed in found if hashed]


def _changed(known: Iterable[tuple[str, object]]) -> Iterator[str]:
    """The commits that have another value than the one before."""
    for (_, before), (commit, value) in itertools.pairwise(known):
        if before != value:
            yield commit
