"""What a run says while it runs: how far it is, a line a module of benchmarks, and what fails."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from asv.console import log

from kernelwatch.error_text import first_error, one_line
from kernelwatch.instrument.skip_reasons import reason_of
from kernelwatch.runner.protocol import Configuration

#: Clears the line that the cursor is in, on a terminal.
_CLEAR = "\r\x1b[K"

#: What failures of one reason differ in.
_NUMBERS = re.compile(r"-?\d[\w.+-]*")

#: Seconds between two looks at the clock, and from which on time left is told.
_TICK, _EARLY = 0.2, 2.0


@dataclass
class Progress:
    """Of one commit."""

    #: Class -> how many configurations it has, how often each is measured, and its benchmarks that are measured.
    counts: Mapping[str, int]
    rounds: Mapping[str, int]
    benchmarks: Mapping[str, Sequence[str]]
    #: Whether the whole text of a failure is shown.
    shows_all: bool = False

    #: Class and place -> rounds that have begun; module -> what became of its benchmarks.
    begun: Counter[tuple[str, int]] = field(default_factory=Counter)
    outcomes: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    #: A reason without its numbers -> the reasons, as they were told.
    failures: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    #: A reason of skips -> how many benchmarks of configurations have it.
    skips: Counter[str] = field(default_factory=Counter)
    shown: float = 0.0

    def __post_init__(self) -> None:
        self.began = time.monotonic()

    def begin(self, group: str, place: int, rounds: int = 1) -> None:
        """Rounds of a configuration of a class have begun; on a terminal, say how far the run is."""
        self.begun[group, place] += rounds
        now = time.monotonic()
        if sys.stdout.isatty() and now - self.shown > _TICK:
            self.shown, took = now, now - self.began
            share = self.begun.total() / sum(count * self.rounds[group] for group, count in self.counts.items())
            seconds = took * (1 - share) / share
            left = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
            print(f"{_CLEAR}{share:4.0%}{f', {left} left' if took > _EARLY else ''}: {group}", end="", flush=True)

    def note(self, one: Configuration) -> None:
        """Note what became of a configuration, and say what failed: each reason once, whatever its numbers."""
        self.begin(one.group, one.place, self.rounds[one.group] - self.begun[one.group, one.place])
        word = "FAILED" if one.failed else "n/a" if one.skipped else "measured"
        for benchmark in self.benchmarks[one.group]:
            self.outcomes[benchmark.partition(".")[0]][word] += 1
            self.skips[one_line(reason_of(one.skipped))] += word == "n/a"
        if one.failed:
            told = one.failed.strip() if self.shows_all else first_error(one.failed)
            same = self.failures[_NUMBERS.sub("0", told)]
            same.append(told)
            if len(same) == 1:
                _clear()
                log.error(f"{one.group}({one.params}) FAILED\n{told}")

    def end(self) -> None:
        """Say in a line for each module what became of its benchmarks."""
        _clear()
        for module, found in self.outcomes.items():
            counts = ", ".join(f"{found[word]} {word}" for word in ("measured", "n/a", "FAILED") if found[word])
            log.info(f"{module}: {counts}")
        for reason, count in (+self.skips).most_common():
            log.info(f"{count} n/a: {reason}")
        for same in self.failures.values():
            if len(same) > 1:
                log.error(f"{len(same)} configurations FAILED: {same[0]}")


def _clear() -> None:
    if sys.stdout.isatty():
        print(_CLEAR, end="", flush=True)
