"""Reuse of stored numbers for configurations with equal fingerprints.

A share of the reusable configurations is measured again, to check that equal fingerprints give equal numbers. If one of
them differs or fails, no number of its kind is reused.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from kernelwatch.runner.protocol import Difference, RunConfiguration, StoredByGroup, StoredNumbers, Task
from kernelwatch.store import reading, record, result_rows
from kernelwatch.store.default_thresholds import default_threshold
from kernelwatch.suite.benchmark_names import Kind, find_kind

#: Share of the reusable numbers that is measured again. A run chooses those that were measured longest ago. So every
#: number is measured again within 1 / RECHECKED_SHARE runs.
RECHECKED_SHARE = 0.02


class _StoredResults:
    """The stored numbers of a machine in one of asv's environments. `folder` is the machine's folder of results."""

    def __init__(self, folder: Path, environment: str) -> None:
        self.load_document = cache(partial(reading.find_document, folder, environment=environment))
        self.load_numbers = cache(self._load_numbers)

    def _load_numbers(self, commit: str, benchmark: str) -> dict[str, Any]:
        """Return parameters -> number, or samples if they are stored. Missing and NaN values are left out."""
        document = self.load_document(commit)
        if document is None or benchmark not in document.results:
            return {}
        stored_rows = result_rows.iter_configurations(document.get_row(benchmark))
        by_params = {", ".join(params): samples or value for params, value, samples in stored_rows}
        return {params: value for params, value in by_params.items() if value is not None and value == value}

    def find_start(self, commit: str, benchmark: str) -> float | None:
        """Return the time at which the run that wrote the numbers last began, as asv stores it; None without one."""
        document = self.load_document(commit)
        row = document and document.results.get(benchmark)
        return row.started_at if row else None


def load_reusable(
    folder: Path, environment: str, commit: str, groups: Mapping[str, Sequence[str]], rounds: Mapping[str, int]
) -> StoredByGroup:
    """Return a machine's reusable numbers: class -> fingerprint -> stored numbers.

    The numbers may come from any commit. But if the commit to measure already has times of a class, they are measured
    again.

    Parameters
    ----------
    folder : Path
        Folder of the machine's results.
    environment, commit : str
        Name of asv's environment, and the commit to measure.
    groups : mapping
        Class -> its benchmarks in this run; the time is always among these benchmarks, because others derive from it.
    rounds : mapping
        Class -> number of rounds that this run would measure.
    """
    results = _StoredResults(folder, environment)
    runs = {run["run"]: run for run in record.read_records(folder.parent, folder.name) if "run" in run}
    entries: StoredByGroup = {group: {} for group in groups}
    lines = record.read_records(folder.parent, folder.name, record.FINGERPRINTS_FILE)
    for index, line in reversed(list(enumerate(lines))):  # the newest first
        run = runs.get(line.get("run"), {})
        for group in groups.keys() & line["fingerprints"].keys():
            is_timed, first_benchmark = find_kind(group) is Kind.TIMED, groups[group][0]
            new_fingerprints = {
                fingerprint: params
                for params, fingerprint in line["fingerprints"][group].items()
                if fingerprint not in entries[group]
            }
            if not new_fingerprints or (is_timed and results.load_numbers(commit, first_benchmark)):
                continue
            for fingerprint, params in new_fingerprints.items():
                stored = _find_stored(results, line["commit"], run, groups[group], params)
                if stored is None:
                    continue
                threshold = _find_threshold(stored, run, first_benchmark, params, rounds[group]) if is_timed else 0.0
                if threshold is not None:
                    stored.run, stored.threshold = index, threshold
                    entries[group][fingerprint] = stored
    return entries


def _find_stored(
    results: _StoredResults, commit: str, run: Mapping[str, Any], benchmarks: Sequence[str], params: str
) -> StoredNumbers | None:
    """Return the numbers of a configuration that a run stored at a commit.

    Return None if a number is missing, or a later run has replaced the numbers.
    """
    began = run.get("began", {}).get(commit, {}).get(benchmarks[0])
    if results.find_start(commit, benchmarks[0]) != began:
        return None
    values = {name: results.load_numbers(commit, name).get(params) for name in benchmarks}
    return None if None in values.values() else StoredNumbers(commit, values)


def _find_threshold(stored: StoredNumbers, run: Mapping[str, Any], time: str, params: str, rounds: int) -> float | None:
    """Return the largest relative difference at which a new time agrees with a stored one.

    Return None unless the stored time has samples of `rounds` rounds: thresholds hold for equal numbers of rounds.
    """
    samples = stored.values[time]
    if not isinstance(samples, list):
        return None
    sizes = record.find_round_sizes(run, stored.commit, time, params, len(samples))
    return default_threshold(statistics.median(samples)) if len(sizes) == rounds else None


class Check(NamedTuple):
    """A configuration, and the stored numbers that it may reuse."""

    configuration: RunConfiguration
    stored: StoredNumbers


def reuse_stored(
    configurations: Sequence[RunConfiguration], task: Task, measure: Callable[[Sequence[Check]], Sequence[float | None]]
) -> list[Difference]:
    """Measure a share of the reusable configurations again. If all agree, set the stored numbers in the others.

    Return the differences. `measure` returns the current number of each check, divided by the stored one; None for a
    configuration that cannot be measured.
    """
    reusable = [
        Check(configuration, stored)
        for configuration in configurations
        if (stored := task.stored.get(configuration.group, {}).get(configuration.fingerprint))
    ]
    checks = choose_checks(reusable)
    differences = [
        Difference(f"{configuration.group}({configuration.params})", ratio)
        for (configuration, stored), ratio in zip(checks, measure(checks), strict=True)
        if ratio is None or abs(ratio - 1) > stored.threshold
    ]
    if not differences:
        measured_ids = {id(check.configuration) for check in checks}
        for configuration, stored in reusable:
            if id(configuration) in measured_ids:
                continue
            configuration.reused = stored.commit if stored.commit != task.commit else ""
            configuration.numbers = stored.values
    return differences


def choose_checks(checks: Sequence[Check]) -> list[Check]:
    """Return the checks to measure: the share RECHECKED_SHARE, rounded up, that was measured longest ago.

    Among configurations of one run, each class contributes in proportion to its size: the first ones in asv's order,
    because neighbours share references and buffers.
    """
    sizes = Counter(check.configuration.group for check in checks)

    def sort_key(check: Check) -> tuple[int, float]:
        return check.stored.run, (check.configuration.index + 0.5) / sizes[check.configuration.group]

    chosen = sorted(checks, key=sort_key)[: math.ceil(RECHECKED_SHARE * len(checks))]
    return sorted(chosen, key=checks.index)
