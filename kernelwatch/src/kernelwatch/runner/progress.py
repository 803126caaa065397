"""What a run says while it runs: how far it is, a line a module of benchmarks, and what fails."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from asv.console import log

from kernelwatch.command import first_error
from kernelwatch.store.outcomes import Configuration

#: Clears the line that the cursor is in, on a terminal.
_CLEAR = "\r\x1b[K"

#: What failures of one reason differ in.
_NUMBERS = re.compile(r"-?\d[\w.+-]*")

#: Seconds between two looks at the clock.
_TICK = 0.2


class Progress:
    """Of one commit.

    Parameters
    ----------
    counts, rounds : mapping
        Class -> how many configurations it has, and how often each is measured.
    benchmarks : mapping
        Class -> those of its benchmarks that are measured.
    shows_all : bool
        Whether the whole text of a failure is shown.
    """

    def __init__(
        self,
        counts: Mapping[str, int],
        rounds: Mapping[str, int],
        benchmarks: Mapping[str, Sequence[str]],
        *,
        shows_all: bool = False,
    ) -> None:
        self._rounds, self._benchmarks, self._shows_all = rounds, benchmarks, shows_all
        self._total = sum(count * rounds[group] for group, count in counts.items())
        #: Class and place -> rounds that have begun.
        self._begun: Counter[tuple[str, int]] = Counter()
        self._outcome: dict[str, Counter[str]] = {}
        self._told: Counter[str] = Counter()
        #: A reason without its numbers -> what was said first.
        self._said: dict[str, str] = {}
        self._began, self._last = time.monotonic(), 0.0

    def begin(self, group: str, place: int, rounds: int = 1) -> None:
        """Rounds of a configuration of a class have begun; on a terminal, say how far the run is."""
        self._begun[group, place] += rounds
        now = time.monotonic()
        if sys.stdout.isatty() and now - self._last > _TICK:
            self._last = now
            share = self._begun.total() / self._total
            seconds = (now - self._began) * (1 - share) / share
            left = f", {_duration(seconds)} left" if now - self._began > 2 else ""
            print(f"{_CLEAR}{share:4.0%}{left}: {group}", end="", flush=True)

    def note(self, one: Configuration) -> None:
        """Note what became of a configuration, and say what failed."""
        self.begin(one.group, one.place, self._rounds[one.group] - self._begun[one.group, one.place])
        word = "FAILED" if one.failed else "n/a" if one.skipped else "measured"
        for benchmark in self._benchmarks[one.group]:
            self._outcome.setdefault(benchmark.partition(".")[0], Counter())[word] += 1
        if one.failed:
            self.fail(f"{one.group}({one.params})", one.failed)

    def fail(self, what: str, why: str) -> None:
        """Say what failed and why, each reason once, whatever its numbers."""
        told = why.strip() if self._shows_all else first_error(why)
        told = self._said.setdefault(_NUMBERS.sub("0", told), told)
        self._told[told] += 1
        if self._told[told] == 1:
            _clear()
            log.error(f"{what} FAILED\n{told}")

    def end(self) -> None:
        """Say in a line for each module what became of its benchmarks."""
        _clear()
        for module, found in self._outcome.items():
            counts = ", ".join(f"{found[word]} {word}" for word in ("measured", "n/a", "FAILED") if found[word])
            log.info(f"{module}: {counts}")
        for told, count in self._told.items():
            if count > 1:
                log.error(f"{count} configurations FAILED: {told}")


def _clear() -> None:
    if sys.stdout.isatty():
        print(_CLEAR, end="", flush=True)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
