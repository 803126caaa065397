"""One commit of a run: what is asked of its process, and what becomes of that in asv's results and in the record."""

from __future__ import annotations

import math
import os
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from asv.benchmarks import Benchmarks
from asv.console import log
from asv.results import Results
from asv.runner import BenchmarkResult
from asv.util import datetime_to_js_timestamp

from kernelwatch.error_text import one_line
from kernelwatch.runner import reuse
from kernelwatch.runner.commit_process import CommitProcess, PackageError
from kernelwatch.runner.progress import Progress
from kernelwatch.runner.protocol import Configuration, Difference, Discovery, Line, Step, Task
from kernelwatch.runner.record import RunRecord
from kernelwatch.store import rows
from kernelwatch.suite.benchmark_names import Kind, find_kind

#: Digits of a sample that are kept: finer than the clock's ticks.
DIGITS = 8

#: The environment variable that has everything measured.
MEASURE_ALL = "KERNELWATCH_MEASURE_ALL"

#: What `asv run` may be told that makes stored numbers useless: other samples, commits in turns.
_OTHERWISE = ("quick", "attribute", "append_samples", "interleave_rounds", "dry_run")


def may_reuse(options: Mapping[str, Any]) -> bool:
    """Whether a run may take over numbers, as it was called."""
    return not os.environ.get(MEASURE_ALL) and not any(options.get(name) for name in _OTHERWISE)


@dataclass
class Commit:
    """Has a commit's process measure benchmarks of kernels, and adds what became of them to asv's results."""

    #: Asv's, of the commit, and the benchmarks that are wanted.
    results: Results
    benchmarks: Benchmarks
    #: Class -> all of its benchmarks.
    groups: Mapping[str, list[str]]
    #: Of `asv run`.
    options: Mapping[str, Any]
    #: The machine's folder of results.
    folder: Path
    record: RunRecord
    #: Whether it is the checkout's: pages show the source lines of today's kernels.
    is_head: bool

    #: Class -> place -> what became of the configuration; class -> seconds that it took.
    heard: defaultdict[str, dict[int, Configuration]] = field(default_factory=lambda: defaultdict(dict))
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    began: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    @cached_property
    def wanted(self) -> dict[str, list[str]]:
        """Class -> those of its benchmarks that are wanted."""
        every = {group: [name for name in names if name in self.benchmarks] for group, names in self.groups.items()}
        return {group: names for group, names in every.items() if names}

    def measure(self, process: AbstractContextManager[CommitProcess]) -> None:
        """Measure, and add the results."""
        task = self._task()
        for name in task.benchmarks:
            texts, chosen = rows.list_configurations(self.benchmarks[name]["params"]), self._chosen(name)
            selected = [texts[place] for place in chosen] if len(chosen) < len(texts) else []
            self.record.begin(name, datetime_to_js_timestamp(self.began), selected)
        counts = {group: len(places) for group, places in task.places.items()}
        progress = Progress(counts, task.rounds, self.wanted, shows_all=bool(self.options.get("show_stderr")))
        try:
            with process as child:
                self._refuse_other_axes(child.discovery)
                child.ask(task)
                self._listen(child, progress)
                problem = child.problem or "nothing was heard of it"
        except PackageError as error:
            problem = str(error)
        for group, places in task.places.items():
            texts = rows.list_configurations(self.benchmarks[self.wanted[group][0]]["params"])
            for place in sorted({*places} - self.heard[group].keys()):
                params = texts[place].replace("'", "")
                self._hear(Configuration(group=group, place=place, params=params, failed=problem), progress)
        progress.end()
        for group, names in self.wanted.items():
            for name in names:
                self._add(name, self.heard[group], self.seconds[group] / len(names))

    def _chosen(self, name: str) -> list[int]:
        """Return the places of a benchmark that are wanted."""
        found: list[int] = self.benchmarks.benchmark_selection.get(name) or []
        return found

    def _refuse_other_axes(self, now: Discovery) -> None:
        """Raise PackageError if a benchmark is another than when the run began: its places would be other launches."""
        known = {each["name"]: each for each in now.benchmarks}
        for name, then in self.benchmarks.items():
            if any(known.get(name, {}).get(key) != then[key] for key in ("params", "version")):
                raise PackageError(f"{name} was changed since the run began; run again")

    def _task(self) -> Task:
        """Return what the commit's process is asked for."""
        asked = self.options.get("attribute") or {}
        every, commit = self.benchmarks._all_benchmarks, self.results.commit_hash
        firsts = {group: self.groups[group][0] for group in self.wanted}
        rounds = {
            group: max(int(asked.get("rounds", every[name].get("rounds", 1))) for name in names)
            for group, names in self.wanted.items()
        }
        rounds = dict.fromkeys(rounds, 1) if self.options.get("quick") else rounds
        # A time is always there, which others are about.
        asked_of = {group: list(dict.fromkeys([firsts[group], *names])) for group, names in self.wanted.items()}
        known = may_reuse(self.options) and reuse.known(self.folder, self.results.env_name, commit, asked_of, rounds)
        is_counted = any(find_kind(group) is Kind.COUNTED for group in self.wanted)
        return Task(
            places={group: sorted(set().union(*map(self._chosen, names))) for group, names in self.wanted.items()},
            benchmarks=[name for names in self.wanted.values() for name in names],
            versions={group: every[first]["version"] for group, first in firsts.items()},
            rounds=rounds,
            stored=known or {},
            commit=commit,
            lines=str(self.folder.resolve()) if is_counted and self.is_head else "",
        )

    def _listen(self, child: CommitProcess, progress: Progress) -> None:
        """Take what the commit's process says."""
        last = time.monotonic()
        for message in child.messages():
            if isinstance(message, Step | Configuration):
                now = time.monotonic()
                self.seconds[message.group] += now - last
                last = now
            match message:
                case Step():
                    progress.begin(message.group, message.place)
                case Configuration():
                    self._hear(message, progress)
                case Difference():
                    found = "could not be measured"
                    if (ratio := message.ratio) is not None:
                        found = f"is {ratio:.4f} times the stored number"
                    what = f"{one_line(message.configuration)}, whose machine code and conditions are the same,"
                    log.warning(f"everything is measured: {what} {found}")
                case Line():
                    self.record.source_lines.append(message.line)

    def _hear(self, one: Configuration, progress: Progress) -> None:
        """Take what became of a configuration."""
        self.heard[one.group][one.place] = one
        names = self.wanted[one.group]
        self.record.heard.append((one, [name for name in names if one.place in self._chosen(name)]))
        progress.note(one)

    def _add(self, name: str, heard: Mapping[int, Configuration], seconds: float) -> None:
        """Add a benchmark to asv's results."""
        benchmark, chosen = self.benchmarks[name], self._chosen(name)
        count = math.prod(map(len, benchmark["params"]))
        values: list[Any] = [math.nan] * count
        samples: list[Any] = [None] * count
        said = []
        for place in chosen:
            one = heard[place]
            number = one.numbers.get(name)
            if isinstance(number, list):
                # asv replaces True by the median of the samples.
                values[place], samples[place] = True, [float(f"{each:.{DIGITS}g}") for each in number]
            elif not one.skipped:
                values[place] = number
            if number is None and not one.skipped:
                said.append(f"For parameters: {one.params}\n{one.failed}")
        numbers = [None if each is None else 1 for each in samples]
        appends = bool(self.options.get("append_samples"))
        self.results.add_result(
            benchmark,
            BenchmarkResult(values, samples, numbers, int(bool(said)), "\n\n".join(said), None),
            selected_idx=chosen,
            started_at=self.began,
            duration=round(seconds, 3),
            record_samples=bool(self.options.get("record_samples")) or appends,
            append_samples=appends,
        )
