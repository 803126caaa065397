"""One commit of a run: the task for its process, and its outcomes in asv's results and in the run's record."""

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
from kernelwatch.instrument import skip_reasons
from kernelwatch.runner import reuse
from kernelwatch.runner.commit_process import CommitProcess, PackageError
from kernelwatch.runner.progress import Progress
from kernelwatch.runner.protocol import Difference, Discovery, RoundStart, RunConfiguration, SourceLine, Task
from kernelwatch.runner.run_record import RunRecord
from kernelwatch.store import result_rows
from kernelwatch.suite.benchmark_names import Kind, find_kind

#: Significant digits of a stored sample: finer than the clock's resolution.
DIGITS = 8

#: The environment variable that disables the reuse of stored numbers.
MEASURE_ALL = "KERNELWATCH_MEASURE_ALL"

#: Options of `asv run` with which no stored number is reused: they change the samples, or interleave the commits.
NO_REUSE_OPTIONS = ("quick", "attribute", "append_samples", "interleave_rounds", "dry_run")


def may_reuse(options: Mapping[str, Any]) -> bool:
    """Return whether the options and the environment allow a run to reuse stored numbers."""
    return not os.environ.get(MEASURE_ALL) and not any(options.get(name) for name in NO_REUSE_OPTIONS)


@dataclass
class CommitMeasurement:
    """Measures the kernel benchmarks of one commit in the commit's process, and adds the outcomes to asv's results."""

    #: asv's results of the commit, and the selected benchmarks.
    results: Results
    benchmarks: Benchmarks
    #: Class -> all of its benchmarks.
    groups: Mapping[str, list[str]]
    #: Options of `asv run`.
    options: Mapping[str, Any]
    #: The machine's folder of results.
    folder: Path
    record: RunRecord
    #: True if the commit is the checkout's HEAD: the suite belongs to it, and the website shows its source lines.
    is_head: bool

    #: Class -> index -> configuration with its outcome. Class -> seconds of its measurement so far.
    configurations: defaultdict[str, dict[int, RunConfiguration]] = field(default_factory=lambda: defaultdict(dict))
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    started_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    @cached_property
    def selected_benchmarks(self) -> dict[str, list[str]]:
        """Class -> its selected benchmarks."""
        selected = {group: [name for name in names if name in self.benchmarks] for group, names in self.groups.items()}
        return {group: names for group, names in selected.items() if names}

    def measure(self, process: AbstractContextManager[CommitProcess]) -> None:
        """Measure the commit in its process, and add the outcomes to the results and the record.

        Configurations without an outcome fail with the reason, such as that of PackageError.
        """
        task = self._make_task()
        for name in task.benchmarks:
            texts = result_rows.list_configurations(self.benchmarks[name]["params"])
            selected_indices = self._select_indices(name)
            selected_texts = [texts[index] for index in selected_indices] if len(selected_indices) < len(texts) else []
            self.record.begin_benchmark(name, datetime_to_js_timestamp(self.started_at), selected_texts)
        counts = {group: len(indices) for group, indices in task.indices.items()}
        progress = Progress(
            counts, task.rounds, self.selected_benchmarks, shows_all=bool(self.options.get("show_stderr"))
        )
        try:
            with process as child:
                self._refuse_other_axes(child.discovery)
                self.record.generators = child.discovery.generators
                child.send_task(task)
                self._process_messages(child, progress)
                problem = child.wait() or "internal error: the commit's process sent no outcome; please report it"
        except PackageError as error:
            problem = str(error)
        for group, indices in task.indices.items():
            texts = result_rows.list_configurations(self.benchmarks[self.selected_benchmarks[group][0]]["params"])
            for index in sorted({*indices} - self.configurations[group].keys()):
                params = texts[index].replace("'", "")
                self._record(RunConfiguration(group=group, index=index, params=params, failed=problem), progress)
        progress.print_summary()
        for group, names in self.selected_benchmarks.items():
            for name in names:
                self._add_result(name, self.configurations[group], self.seconds[group] / len(names))

    def _select_indices(self, name: str) -> list[int]:
        return list(self.benchmarks.benchmark_selection.get(name) or ())

    def _refuse_other_axes(self, discovery: Discovery) -> None:
        """Raise PackageError if the axes or the version of a benchmark changed since the run began."""
        current = {benchmark["name"]: benchmark for benchmark in discovery.benchmarks}
        for name, benchmark in self.benchmarks.items():
            if any(current.get(name, {}).get(key) != benchmark[key] for key in ("params", "version")):
                raise PackageError(f"{name} was changed since the run began; run again")

    def _make_task(self) -> Task:
        attributes = self.options.get("attribute") or {}
        benchmarks, commit = self.benchmarks._all_benchmarks, self.results.commit_hash
        first_names = {group: self.groups[group][0] for group in self.selected_benchmarks}
        rounds = {
            group: max(int(attributes.get("rounds", benchmarks[name].get("rounds", 1))) for name in names)
            for group, names in self.selected_benchmarks.items()
        }
        rounds = dict.fromkeys(rounds, 1) if self.options.get("quick") else rounds
        # The time benchmark of a class is always requested, because the others derive from it.
        requested = {
            group: list(dict.fromkeys([first_names[group], *names]))
            for group, names in self.selected_benchmarks.items()
        }
        stored = may_reuse(self.options) and reuse.load_reusable(
            self.folder, self.results.env_name, commit, requested, rounds
        )
        is_counted = any(find_kind(group) is Kind.COUNTED for group in self.selected_benchmarks)
        return Task(
            indices={
                group: sorted(set().union(*map(self._select_indices, names)))
                for group, names in self.selected_benchmarks.items()
            },
            benchmarks=[name for names in self.selected_benchmarks.values() for name in names],
            versions={group: benchmarks[first]["version"] for group, first in first_names.items()},
            rounds=rounds,
            stored=stored or {},
            commit=commit,
            source_lines_folder=str(self.folder.resolve()) if is_counted and self.is_head else "",
        )

    def _process_messages(self, child: CommitProcess, progress: Progress) -> None:
        """Record outcomes as they arrive, and add the seconds since the previous message to those of their class."""
        previous = time.monotonic()
        for message in child.iter_messages():
            if isinstance(message, RoundStart | RunConfiguration):
                now = time.monotonic()
                self.seconds[message.group] += now - previous
                previous = now
            match message:
                case RoundStart():
                    progress.begin_rounds(message.group, message.index)
                case RunConfiguration():
                    self._record(message, progress)
                case Difference():
                    noun = "time" if find_kind(message.configuration) is Kind.TIMED else "count"
                    ratio = message.ratio
                    finding = "cannot be measured" if ratio is None else f"is {ratio:.4f} times the stored number"
                    log.warning(
                        f"no stored {noun} is reused: {one_line(message.configuration)} {finding}, "
                        "although its machine code and conditions are the same"
                    )
                case SourceLine():
                    self.record.source_lines.append(message.line)

    def _record(self, configuration: RunConfiguration, progress: Progress) -> None:
        _fail_if_not_finite(configuration)
        if self.is_head and configuration.skipped.startswith(skip_reasons.LACKS):  # the suite belongs to this commit
            configuration.failed, configuration.skipped = configuration.skipped, ""
        self.configurations[configuration.group][configuration.index] = configuration
        names = self.selected_benchmarks[configuration.group]
        self.record.configurations.append(
            (configuration, [name for name in names if configuration.index in self._select_indices(name)])
        )
        progress.note_configuration(configuration)

    def _add_result(self, name: str, configurations: Mapping[int, RunConfiguration], seconds: float) -> None:
        benchmark, indices = self.benchmarks[name], self._select_indices(name)
        count = math.prod(map(len, benchmark["params"]))
        values: list[Any] = [math.nan] * count
        samples: list[Any] = [None] * count
        failures = []
        for index in indices:
            configuration = configurations[index]
            number = configuration.numbers.get(name)
            if isinstance(number, list):
                # asv replaces True with the median of the samples.
                values[index], samples[index] = True, [float(f"{value:.{DIGITS}g}") for value in number]
            elif not configuration.skipped:
                values[index] = number
            if number is None and not configuration.skipped:
                failures.append(f"For parameters: {configuration.params}\n{configuration.failed}")
        calls_per_sample = [None if sample is None else 1 for sample in samples]
        appends = bool(self.options.get("append_samples"))
        self.results.add_result(
            benchmark,
            BenchmarkResult(values, samples, calls_per_sample, int(bool(failures)), "\n\n".join(failures), None),
            selected_idx=indices,
            started_at=self.started_at,
            duration=round(seconds, 3),
            record_samples=bool(self.options.get("record_samples")) or appends,
            append_samples=appends,
        )


def _fail_if_not_finite(configuration: RunConfiguration) -> None:
    """Turn a number that is not finite into a failure, because JSON would store it as null."""
    for name, number in list(configuration.numbers.items()):
        samples = number if isinstance(number, list) else [number]
        if any(sample is None or not math.isfinite(sample) for sample in samples):
            del configuration.numbers[name]
            problem = f"{name} has a number that is not finite; only finite numbers can be stored"
            configuration.failed = configuration.failed or problem
