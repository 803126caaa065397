"""One commit of a run: what is asked of its process, and what becomes of that in asv's results and in the record."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from asv.benchmarks import Benchmarks
from asv.console import log
from asv.results import Results
from asv.runner import BenchmarkResult
from asv.util import datetime_to_js_timestamp

from kernelwatch.command import one_line
from kernelwatch.runner import stored
from kernelwatch.runner.messages import Step, Task
from kernelwatch.runner.process import CommitProcess, PackageError
from kernelwatch.runner.progress import Progress
from kernelwatch.runner.record import RunRecord
from kernelwatch.runner.reuse import Stored
from kernelwatch.store import rows
from kernelwatch.store.outcomes import Checks, Configuration, Line

#: Digits of a sample that are kept: finer than the clock's ticks.
DIGITS = 8


class Commit:
    """Has a commit's process measure benchmarks of kernels, and adds what became of them to asv's results.

    Parameters
    ----------
    results : Results
        Asv's, of the commit.
    benchmarks : Benchmarks
        Those that are wanted.
    groups : mapping
        Class -> all of its benchmarks.
    options : mapping
        Of `asv run`.
    folder : Path
        The machine's, of results.
    record : RunRecord
        Of the run at this commit.
    is_head : bool
        Whether it is the checkout's: pages show the source lines of today's kernels.
    """

    def __init__(
        self,
        results: Results,
        benchmarks: Benchmarks,
        groups: Mapping[str, list[str]],
        options: Mapping[str, Any],
        folder: Path,
        record: RunRecord,
        *,
        is_head: bool,
    ) -> None:
        self._results, self._benchmarks, self._options = results, benchmarks, options
        self._folder, self._record, self._is_head = folder, record, is_head
        wanted = {group: [name for name in names if name in benchmarks] for group, names in groups.items()}
        self._groups = {group: names for group, names in wanted.items() if names}
        self._first = {group: groups[group][0] for group in self._groups}
        self._heard: defaultdict[str, dict[int, Configuration]] = defaultdict(dict)
        self._seconds: dict[str, float] = dict.fromkeys(self._groups, 0.0)
        self._began = datetime.now(timezone.utc)

    def measure(self, begin: Callable[[ExitStack], CommitProcess]) -> None:
        """Measure, and add the results; `begin` enters the commit's process into a stack."""
        task = self._task()
        for name in task.benchmarks:
            self._begin(name)
        counts = {group: len(places) for group, places in task.places.items()}
        progress = Progress(counts, task.rounds, self._groups, shows_all=bool(self._options.get("show_stderr")))
        problem = ""
        try:
            with ExitStack() as closing:
                child = begin(closing)
                task.stored = self._stored(task.rounds)
                child.ask(task)
                self._listen(child, progress)
                problem = child.problem
        except PackageError as error:
            problem = str(error)
        for group, places in task.places.items():
            for place in (each for each in places if each not in self._heard[group]):
                text = rows.texts(self._benchmarks[self._groups[group][0]]["params"])[place].replace("'", "")
                failed = Configuration(
                    group=group, place=place, params=text, failed=problem or "nothing was heard of it"
                )
                self._hear(failed, progress)
        progress.end()
        for group, names in self._groups.items():
            for name in names:
                self._add(group, name)

    def _task(self) -> Task:
        places: dict[str, list[int]] = {}
        for group, names in self._groups.items():
            chosen = (self._benchmarks.benchmark_selection.get(name) or () for name in names)
            places[group] = sorted(set().union(*chosen))
        asked = self._options.get("attribute") or {}
        rounds = {
            group: max(int(asked.get("rounds", self._benchmarks[name].get("rounds", 1))) for name in names)
            for group, names in self._groups.items()
        }
        if self._options.get("quick"):
            rounds = dict.fromkeys(rounds, 1)
        is_counted = any(group.startswith("track_counted.") for group in self._groups)
        return Task(
            places=places,
            benchmarks=[name for names in self._groups.values() for name in names],
            versions={
                group: self._benchmarks._all_benchmarks[first]["version"] for group, first in self._first.items()
            },
            rounds=rounds,
            stored=Stored(),
            lines=str(self._folder.resolve()) if is_counted and self._is_head else "",
        )

    def _stored(self, rounds: Mapping[str, int]) -> Stored:
        commit = self._results.commit_hash
        if not stored.is_wanted(self._options):
            return Stored(commit=commit)
        groups = {
            group: list(dict.fromkeys([self._first[group], *names]))
            for group, names in self._groups.items()
            if not group.startswith("track_compiled.")
        }
        return stored.known(self._folder, self._results.env_name, commit, groups, rounds)

    def _listen(self, child: CommitProcess, progress: Progress) -> None:
        """Take what the commit's process says."""
        last = time.monotonic()
        for message in child.messages():
            now = time.monotonic()
            group = getattr(message, "group", "")
            if group in self._seconds:
                self._seconds[group] += now - last
                last = now
            match message:
                case Step():
                    progress.begin(group, message.place)
                case Configuration():
                    self._hear(message, progress)
                case Checks():
                    self._record.note_checks(message.checked)
                    for each in (one for one in message.checked if one.differs):
                        log.warning(f"everything is measured: {_told(each)}")
                case Line():
                    self._record.note_line(message.line)

    def _hear(self, one: Configuration, progress: Progress) -> None:
        """Take what became of a configuration."""
        self._heard[one.group][one.place] = one
        selected = [
            name
            for name in self._groups[one.group]
            if one.place in (self._benchmarks.benchmark_selection.get(name) or ())
        ]
        self._record.note(one, selected)
        progress.note(one)

    def _begin(self, name: str) -> None:
        """Note that a benchmark is measured."""
        texts, chosen = rows.texts(self._benchmarks[name]["params"]), self._benchmarks.benchmark_selection[name]
        selected = [texts[place] for place in chosen] if len(chosen) < len(texts) else []
        moment = datetime_to_js_timestamp(self._began)
        self._record.begin(name, moment, selected)

    def _add(self, group: str, name: str) -> None:
        """Add a benchmark to asv's results."""
        benchmark, options = self._benchmarks[name], self._options
        chosen, count = self._benchmarks.benchmark_selection[name], math.prod(map(len, benchmark["params"]))
        values: list[Any] = [math.nan] * count
        samples: list[Any] = [None] * count
        said = []
        for place in chosen:
            one = self._heard[group][place]
            number = one.numbers.get(name)
            if isinstance(number, list):
                values[place], samples[place] = True, [float(f"{each:.{DIGITS}g}") for each in number]
            elif not one.skipped:
                values[place] = number
            if number is None and not one.skipped:
                said.append(f"For parameters: {one.params}\n{one.failed}")
        numbers = [None if each is None else 1 for each in samples]
        self._results.add_result(
            benchmark,
            BenchmarkResult(values, samples, numbers, int(bool(said)), "\n\n".join(said), None),
            selected_idx=chosen,
            started_at=self._began,
            duration=round(self._seconds[group] / len(self._groups[group]), 3),
            record_samples=bool(options.get("record_samples") or options.get("append_samples")),
            append_samples=bool(options.get("append_samples")),
        )


def _told(each: Any) -> str:
    found = "could not be measured" if each.ratio is None else f"took {each.ratio:.4f} of the time that is stored"
    return f"{one_line(each.configuration)}, whose machine code and conditions are the same, {found}"
