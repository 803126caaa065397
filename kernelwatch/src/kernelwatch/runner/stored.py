"""What earlier runs measured, by fingerprints, which their records have.

A record holds the fingerprint of each configuration that was measured, and for each that was not, the commit whose
numbers it has.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwatch.runner import reuse
from kernelwatch.runner.reuse import Entry, Stored
from kernelwatch.store import reading, record, rows
from kernelwatch.store.models import Document
from kernelwatch.store.noise import default

#: With a value, everything is measured.
MEASURE_ALL = "KERNELWATCH_MEASURE_ALL"

#: What `asv run` may be told that makes stored numbers useless: other samples, commits in turns.
_OTHERWISE = ("quick", "attribute", "append_samples", "interleave_rounds", "dry_run")


def is_wanted(options: Mapping[str, Any]) -> bool:
    """Whether a run may reuse numbers, as it was called."""
    return not os.environ.get(MEASURE_ALL) and not any(options.get(name) for name in _OTHERWISE)


class Values:
    """The stored numbers of one commit."""

    def __init__(self, results: Document) -> None:
        #: Benchmark -> when asv began with it, in milliseconds since 1970.
        self.began = {name: row.started_at for name, row in results.results.items()}
        self._results = results
        self._read: dict[str, dict[str, Any]] = {}

    def of(self, benchmark: str) -> dict[str, Any]:
        """Return a benchmark's numbers by parameters: samples where they are kept, and nothing that is no number."""
        if benchmark not in self._read and benchmark in self._results.results:
            self._read[benchmark] = {
                ", ".join(params): samples or value
                for params, value, samples in rows.each(self._results.row(benchmark))
                if value is not None and not math.isnan(value)
            }
        return self._read.get(benchmark, {})


class History:
    """What a machine measured in one of asv's environments.

    Parameters
    ----------
    folder : Path
        Of results.
    machine, environment : str
        Their names.
    groups : mapping
        Class -> those of its benchmarks that this run has; a time is always there, which others are about.
    rounds : mapping
        Class -> how many rounds this run would measure.
    """

    def __init__(
        self,
        folder: Path,
        machine: str,
        environment: str,
        groups: Mapping[str, Sequence[str]],
        rounds: Mapping[str, int],
    ) -> None:
        self._folder, self._machine, self._environment = folder, machine, environment
        self._groups, self._rounds = groups, rounds
        self._timed = {group for group, each in groups.items() if ".time_" in each[0]}
        self._known: dict[str, Values | None] = {}

    def stored(self, commit: str) -> Stored:
        """Return what is stored of other commits, and the counted numbers of this one, the newest last.

        The times of a commit that is measured again are measured.
        """
        lines = record.read(self._folder, self._machine, record.FINGERPRINTS_FILE)
        runs = record.read(self._folder, self._machine)
        own = self._values(commit)
        again = {group for group in self._timed if own and own.of(self._groups[group][0])}
        entries: dict[str, Entry] = {}
        for place, line in enumerate(lines):
            wanted = set(self._groups) & set(line["fingerprints"])
            wanted -= again | (self._timed if line["commit"] == commit else set())
            values = self._values(line["commit"]) if wanted else None
            if values is not None:
                of_commit = [run for run in runs if line["commit"] in run["commits"]]
                for group in wanted:
                    entries |= self._entries(line, of_commit, group, values, place)
        return Stored(entries, commit)

    def _values(self, commit: str) -> Values | None:
        if commit not in self._known:
            found = reading.documents(self._folder / self._machine, commit)
            own = (each for each in found if (each.commit_hash, each.env_name) == (commit, self._environment))
            self._known[commit] = next(map(Values, own), None)
        return self._known[commit]

    def _entries(
        self, line: Mapping[str, Any], runs: Sequence[dict[str, Any]], group: str, values: Values, place: int
    ) -> Iterator[tuple[str, Entry]]:
        """Yield what a line's run measured of a class, by fingerprints."""
        first, *_ = benchmarks = self._groups[group]
        own_run = next((run for run in runs if "run" in line and run.get("run") == line["run"]), {})
        for params, fingerprint in _own(line, runs, group, first, values).items():
            found = {benchmark: values.of(benchmark).get(params) for benchmark in benchmarks}
            samples = found[first]
            if None in found.values():
                continue
            entry = Entry(line["commit"], found, run=place)
            if group in self._timed:
                if not isinstance(samples, list):
                    continue
                # One process against the two that are stored: they differ by more than two against two, which
                # thresholds are for.
                median = statistics.median(samples)
                entry.threshold = default(median)
                rounds = record.counts(own_run, line["commit"], first, params, len(samples))
                if len(rounds) != self._rounds[group]:
                    continue
            yield reuse.key(group, fingerprint), entry


def _own(
    line: Mapping[str, Any], runs: Sequence[dict[str, Any]], group: str, benchmark: str, values: Values
) -> dict[str, str]:
    """Return a class's fingerprints by parameters, of numbers of a line's run that no later one has replaced."""
    found: dict[str, str] = line["fingerprints"][group]
    began = values.began.get(benchmark)
    if began is None or "run" not in line:
        return found if began is not None and record.during(line, began) else {}
    wrote = record.wrote(runs, line["commit"], benchmark, began)
    last = {params: [run for run in wrote if record.selects(run, benchmark, params)][-1:] for params in found}
    return {params: found[params] for params, run in last.items() if [each.get("run") for each in run] == [line["run"]]}
