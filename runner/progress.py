"""What a run says while it runs: a line a benchmark, and how long the rest may take.

asv prints a table a benchmark: thousands of lines here, most of them `n/a`. TABLES asks for these.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import time
from typing import Any

from asv import runner
from asv.console import log
from asv.results import Results
from asv.util import human_time

#: With a value, asv's own tables are printed.
TABLES = "COALESCING_WATCH_TABLES"

#: Clears the line that the cursor is in, on a terminal.
_CLEAR = "\r\x1b[K"


class Progress:
    """Counts the configurations of each benchmark as they are measured."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._steps = 0
        self._benchmark = ""
        self._done = 0

    def begins(self, benchmark: dict[str, Any]) -> None:
        """Note that a configuration is about to run; on a terminal, say so in place."""
        if not log._count or log._count < self._steps:  # another run has begun
            self._began = time.monotonic()
        if (log._count, benchmark["name"]) != (self._steps, self._benchmark):
            self._steps, self._benchmark, self._done = log._count, benchmark["name"], 0
        count = math.prod(len(axis) for axis in benchmark["params"])
        if sys.stdout.isatty():
            part = self._done / count
            print(f"{_CLEAR}{self._benchmark}, {self._done + 1} of {count}{self.left(part - 1)}", end="", flush=True)
        self._done += 1

    def left(self, part: float = 0.0) -> str:
        """How long the rest may take, if it goes on as it went; empty where nothing is known yet."""
        done = log._count + part
        if not log._total or not 0 < done < log._total:
            return ""
        seconds = (time.monotonic() - self._began) * (log._total - done) / done
        return f", {human_time(seconds)} left"

    def ends(self, results: Results, benchmark: dict[str, Any], show_stderr: bool = False) -> None:
        """Say in a line what became of a benchmark; asv calls it in place of its own `log_benchmark_result`."""
        if sys.stdout.isatty():
            print(_CLEAR, end="")
            log._needs_newline = False
            log.info(benchmark["name"], reserve_space=True)
        log.add_padded(outcome(results.get_result_value(benchmark["name"], benchmark["params"])) + self.left())
        said = results.stderr.get(benchmark["name"]) or ""
        if show_stderr and said:
            log.error(said)
        elif results.errcode.get(benchmark["name"]):
            for line in reasons(said):
                log.error(line)


def outcome(values: list[float | None]) -> str:
    """Count the values of a benchmark, those that do not apply, and those that failed."""
    failed = sum(value is None for value in values)
    skipped = sum(isinstance(value, float) and math.isnan(value) for value in values)
    counts = {"measured": len(values) - failed - skipped, "n/a": skipped, "FAILED": failed}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def reasons(said: str) -> list[str]:
    """Return why configurations failed, each reason once: the last line of what each of them said."""
    last = (text.strip().rpartition("\n")[2] for text in said.split("\n\nFor parameters: "))
    return list(dict.fromkeys(filter(None, last)))


def install() -> None:
    """Put this in the place of asv's tables, unless those are asked for."""
    if os.environ.get(TABLES):
        return
    progress, run = Progress(), runner._run_benchmark_single_param

    @functools.wraps(run)
    def counted(benchmark: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        progress.begins(benchmark)
        return run(benchmark, *args, **kwargs)

    runner._run_benchmark_single_param = counted
    runner.log_benchmark_result = progress.ends
