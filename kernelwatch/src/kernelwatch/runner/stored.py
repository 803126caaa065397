"""What earlier runs measured, by the fingerprints that their records have."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kernelwatch.runner import reuse
from kernelwatch.runner.reuse import Entry, Stored
from kernelwatch.store import reading, record, rows
from kernelwatch.store.models import Document, Row
from kernelwatch.store.noise import default

#: With a value, everything is measured.
MEASURE_ALL = "KERNELWATCH_MEASURE_ALL"

#: What `asv run` may be told that makes stored numbers useless: other samples, commits in turns.
_OTHERWISE = ("quick", "attribute", "append_samples", "interleave_rounds", "dry_run")


def is_wanted(options: Mapping[str, Any]) -> bool:
    """Whether a run may reuse numbers, as it was called."""
    return not os.environ.get(MEASURE_ALL) and not any(options.get(name) for name in _OTHERWISE)


def known(
    folder: Path, environment: str, commit: str, groups: Mapping[str, Sequence[str]], rounds: Mapping[str, int]
) -> Stored:
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
        found = reading.documents(folder, commit)
        return next((each for each in found if (each.commit_hash, each.env_name) == (commit, environment)), None)

    @cache
    def numbers(commit: str, benchmark: str) -> dict[str, Any]:
        return _numbers(document(commit), benchmark)

    runs = {run["run"]: run for run in record.read(folder.parent, folder.name) if "run" in run}
    entries: dict[str, Entry] = {}
    lines = record.read(folder.parent, folder.name, record.FINGERPRINTS_FILE)
    for place, line in reversed(list(enumerate(lines))):
        run, origin = runs.get(line.get("run"), {}), line["commit"]
        for group in groups.keys() & line["fingerprints"].keys():
            names, first = groups[group], groups[group][0]
            keys = {reuse.key(group, each): params for params, each in line["fingerprints"][group].items()}
            is_timed = ".time_" in first
            if entries.keys() >= keys.keys() or (is_timed and numbers(commit, first)):
                continue
            row = _row(document(origin), first)
            if row is None or row.started_at != run.get("began", {}).get(origin, {}).get(first):
                continue  # a later run has replaced the numbers
            for key in keys.keys() - entries.keys():
                found = Entry(origin, {name: numbers(origin, name).get(keys[key]) for name in names}, run=place)
                if None in found.values.values():
                    continue
                if not is_timed or _is_alike(found, run, first, keys[key], rounds[group]):
                    entries[key] = found
    return Stored(entries, commit)


def _is_alike(entry: Entry, run: Mapping[str, Any], time: str, params: str, rounds: int) -> bool:
    """Whether a stored time has samples of as many rounds; if so, say how far a new one may lie from it."""
    samples = entry.values[time]
    if not isinstance(samples, list):
        return False
    # One process against the two that are stored: they differ by more than two against two, which thresholds are for.
    entry.threshold = default(statistics.median(samples))
    return len(record.counts(run, entry.commit, time, params, len(samples))) == rounds


def _row(document: Document | None, benchmark: str) -> Row | None:
    return None if document is None else document.results.get(benchmark)


def _numbers(document: Document | None, benchmark: str) -> dict[str, Any]:
    """Return a benchmark's numbers by parameters: samples where they are kept, and nothing that is no number."""
    if document is None or benchmark not in document.results:
        return {}
    return {
        ", ".join(params): samples or value
        for params, value, samples in rows.each(document.row(benchmark))
        if value is not None and not math.isnan(value)
    }
