"""Which numbers of earlier commits are taken over: those whose fingerprints are the same, if a sample of them holds.

A share of what could be reused is measured all the same: the standing comparison of equals with equals. If one of these
differs, nothing is reused.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kernelwatch.runner.protocol import Configuration, Difference, Entries, Entry, Task
from kernelwatch.store import reading, record, rows
from kernelwatch.store.models import Document
from kernelwatch.store.noise import default_threshold
from kernelwatch.suite.benchmark_names import Kind, find_kind

#: Of a class's numbers that could be reused, the share that is measured all the same. A run takes those that were
#: measured longest ago: each is measured again within 1 / SHARE runs.
SHARE = 0.02


def known(
    folder: Path, environment: str, commit: str, groups: Mapping[str, Sequence[str]], rounds: Mapping[str, int]
) -> Entries:
    """Return what a machine measured at other commits, and the counted numbers of this one, the newest last.

    The times of a commit that is measured again are measured.

    Parameters
    ----------
    folder : Path
        The machine's.
    environment, commit : str
        The name of asv's environment, and the commit that is measured.
    groups : mapping
        Class -> those of its benchmarks that this run has; a time is always there, which others are about.
    rounds : mapping
        Class -> how many rounds this run would measure.
    """

    @cache
    def document(commit: str) -> Document | None:
        found = reading.iter_documents(folder, commit)
        return next((each for each in found if (each.commit_hash, each.env_name) == (commit, environment)), None)

    @cache
    def numbers(commit: str, benchmark: str) -> dict[str, Any]:
        """Numbers by parameters: samples where they are kept, and nothing that is no number."""
        found = document(commit)
        each = rows.iter_configurations(found.get_row(benchmark)) if found and benchmark in found.results else ()
        numbers = {", ".join(params): samples or value for params, value, samples in each}
        return {params: value for params, value in numbers.items() if value is not None and value == value}

    runs = {run["run"]: run for run in record.read_records(folder.parent, folder.name) if "run" in run}
    entries: Entries = {group: {} for group in groups}
    lines = record.read_records(folder.parent, folder.name, record.FINGERPRINTS_FILE)
    for place, line in reversed(list(enumerate(lines))):
        run, origin = runs.get(line.get("run"), {}), line["commit"]
        for group in groups.keys() & line["fingerprints"].keys():
            names, first = groups[group], groups[group][0]
            new = {each: params for params, each in line["fingerprints"][group].items() if each not in entries[group]}
            is_timed = find_kind(first) is Kind.TIMED
            if not new or (is_timed and numbers(commit, first)):
                continue
            source = document(origin)
            row = source and source.results.get(first)
            if not row or row.started_at != run.get("began", {}).get(origin, {}).get(first):
                continue  # a later run has replaced the numbers
            for fingerprint, params in new.items():
                found = Entry(origin, {name: numbers(origin, name).get(params) for name in names}, run=place)
                if None in found.values.values():
                    continue
                if not is_timed or _is_alike(found, run, first, params, rounds[group]):
                    entries[group][fingerprint] = found
    return entries


def _is_alike(entry: Entry, run: Mapping[str, Any], time: str, params: str, rounds: int) -> bool:
    """Whether a stored time has samples of as many rounds; if so, say how far a new one may lie from it."""
    samples = entry.values[time]
    if not isinstance(samples, list):
        return False
    # One process against the two that are stored: they differ by more than two against two, which thresholds are for.
    entry.threshold = default_threshold(statistics.median(samples))
    return len(record.find_round_sizes(run, entry.commit, time, params, len(samples))) == rounds


class Check(NamedTuple):
    """A configuration to measure although its number is stored."""

    one: Configuration
    entry: Entry


def decide(
    ones: Sequence[Configuration], task: Task, measure: Callable[[Sequence[Check]], Sequence[float | None]]
) -> list[Difference]:
    """Give configurations their stored numbers, if those that are measured all the same agree; return what does not.

    The configurations are changed in place. `measure` returns of each what it is now over what is stored, None if it
    cannot be measured.
    """
    known: dict[str, list[Check]] = {}
    for one in ones:
        if entry := task.stored.get(one.group, {}).get(one.fingerprint):
            known.setdefault(one.group, []).append(Check(one, entry))
    checks = [check for group in known.values() for check in chosen(group)]
    differences = [
        Difference(f"{one.group}({one.params})", ratio)
        for (one, entry), ratio in zip(checks, measure(checks), strict=True)
        if ratio is None or abs(ratio - 1) > entry.threshold
    ]
    if not differences:
        measured = {id(check.one) for check in checks}
        for one, entry in (check for group in known.values() for check in group if id(check.one) not in measured):
            one.reused = entry.commit if entry.commit != task.commit else ""
            one.numbers = entry.values
    return differences


def chosen(checks: Sequence[Check]) -> list[Check]:
    """Return a share of the configurations of a class, rounded up: those that were measured longest ago, side by side.

    Neighbours have references and buffers in common, so that they take less time than others.
    """
    return sorted(checks, key=lambda check: (check.entry.run, check.one.place))[: math.ceil(SHARE * len(checks))]
