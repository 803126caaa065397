"""Progress of a run: a percentage on a terminal, each new failure, and one summary line per module of benchmarks."""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from asv.console import log

from kernelwatch.error_text import blank_numbers, first_error, one_line
from kernelwatch.instrument.skip_reasons import NOT_SUPPORTED
from kernelwatch.runner.protocol import RunConfiguration

#: Escape sequence that clears the current line of a terminal.
_CLEAR = "\r\x1b[K"

#: Seconds between two updates, and seconds before the first estimate of the remaining time.
_TICK, _ESTIMATE_AFTER = 0.2, 2.0


@dataclass
class Progress:
    """Progress of the measurement of one commit."""

    #: Class -> its number of configurations. Class -> rounds of each configuration. Class -> its selected benchmarks.
    counts: Mapping[str, int]
    rounds: Mapping[str, int]
    benchmarks: Mapping[str, Sequence[str]]
    #: True to show the whole text of a failure.
    shows_all: bool = False

    #: Class and index -> rounds that have begun. Module -> "measured", "n/a" or "FAILED" -> number of values.
    rounds_begun: Counter[tuple[str, int]] = field(default_factory=Counter)
    counts_by_module: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    #: Reason with its numbers blanked -> all reasons of failures that differ from it only in numbers.
    failures: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    #: Reason of a skip -> number of benchmarks skipped for it, over all configurations.
    skips: Counter[str] = field(default_factory=Counter)
    last_shown: float = 0.0

    def __post_init__(self) -> None:
        self.began = time.monotonic()

    def begin_rounds(self, group: str, index: int, rounds: int = 1) -> None:
        """Count the begun rounds of a configuration; on a terminal, print the percentage."""
        self.rounds_begun[group, index] += rounds
        now = time.monotonic()
        if sys.stdout.isatty() and now - self.last_shown > _TICK:
            self.last_shown, elapsed = now, now - self.began
            total_rounds = sum(count * self.rounds[name] for name, count in self.counts.items())
            share = self.rounds_begun.total() / total_rounds
            seconds = elapsed * (1 - share) / share
            remaining = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
            estimate = f", {remaining} left" if elapsed > _ESTIMATE_AFTER else ""
            print(f"{_CLEAR}{share:4.0%}{estimate}: {group}", end="", flush=True)

    def note_configuration(self, configuration: RunConfiguration) -> None:
        """Count a configuration's outcome and all of its rounds, and print its failure.

        Of failures that differ only in numbers, only the first is printed. A skip for NOT_SUPPORTED is not counted.
        """
        group, index = configuration.group, configuration.index
        self.begin_rounds(group, index, self.rounds[group] - self.rounds_begun[group, index])
        if configuration.skipped.startswith(NOT_SUPPORTED):  # asv has all combinations of the axes
            return
        outcome = "FAILED" if configuration.failed else "n/a" if configuration.skipped else "measured"
        for benchmark in self.benchmarks[group]:
            self.counts_by_module[benchmark.partition(".")[0]][outcome] += 1
        if outcome == "n/a":
            self.skips[one_line(configuration.skipped)] += len(self.benchmarks[group])
        if configuration.failed:
            reason = configuration.failed.strip() if self.shows_all else first_error(configuration.failed)
            same_reasons = self.failures[blank_numbers(reason)]
            same_reasons.append(reason)
            if len(same_reasons) == 1:
                _clear_line()
                log.error(f"{group}({configuration.params}) FAILED\n{reason}")

    def print_summary(self) -> None:
        """Print the numbers of outcomes of each module, the reasons of skips, and the failures that occurred again."""
        _clear_line()
        for module, outcomes in self.counts_by_module.items():
            counts = ", ".join(f"{outcomes[word]} {word}" for word in ("measured", "n/a", "FAILED") if outcomes[word])
            log.info(f"{module}: {counts}")
        for reason, count in self.skips.most_common():
            log.info(f"{count} n/a: {reason}")
        for same_reasons in self.failures.values():
            if len(same_reasons) > 1:
                log.error(f"{len(same_reasons)} configurations FAILED: {same_reasons[0]}")


def _clear_line() -> None:
    if sys.stdout.isatty():
        print(_CLEAR, end="", flush=True)
