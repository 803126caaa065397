"""What a run says while it runs: a line a module of benchmarks, and what fails.

asv prints a line and a table a benchmark: thousands of lines here, most of them `n/a`. TABLES asks for these.
"""

from __future__ import annotations

import functools
import math
import os
import sys
from collections import Counter
from typing import Any

from asv.console import log
from asv.results import Results
from asv.runner import ForkServer

from kernelwatch.asv.patches import Feature, Patch

#: With a value, asv's own tables are printed.
TABLES = "KERNELWATCH_TABLES"

#: Clears the line that the cursor is in, on a terminal.
_CLEAR = "\r\x1b[K"

#: How asv ends what it says of each benchmark whose class could not be prepared; `_with_reason` has said it once.
_UNPREPARED = "skipped (setup_cache failed)"


def tables() -> bool:
    """Whether tables are asked for."""
    return bool(os.environ.get(TABLES))


class Progress:
    """Stands for asv's log where benchmarks run: counts what becomes of a module's, and passes warnings and errors."""

    def __init__(self) -> None:
        self._module = ""
        self._outcome: Counter[str] = Counter()
        self._said: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(log, name)

    def info(self, text: str = "", *_: Any, reserve_space: bool = False, **__: Any) -> None:
        """On a terminal, tell in place which benchmark begins."""
        if reserve_space and sys.stdout.isatty():
            print(f"{_CLEAR}{text}", end="", flush=True)

    def add(self, *_: Any, **__: Any) -> None:
        """Say nothing."""

    add_padded = dot = add

    def warning(self, message: str, **how: Any) -> None:
        """Warn, but not of each benchmark whose class has been named."""
        if not message.endswith(_UNPREPARED):
            log.warning(message, **how)

    def ends(self, results: Results, benchmark: dict[str, Any], show_stderr: bool = False) -> None:
        """Note what became of a benchmark, and say what failed; asv calls it in place of its `log_benchmark_result`."""
        name = benchmark["name"]
        module = name.partition(".")[0]
        if module != self._module:
            self.told()
            self._module = module
        found = outcome(results.get_result_value(name, benchmark["params"]))
        self._outcome.update(found)
        said = results.stderr.get(name) or ""
        is_failed = bool(results.errcode.get(name))
        if is_failed or (show_stderr and said):
            _clear()
            why = [said] if show_stderr else reasons(said)
            again, self._said = is_failed and why == self._said, why
            failed = [f"{name}: {found['FAILED']} FAILED{', as above' * again}"] * is_failed
            log.error("\n".join([*failed, *why * (not again)]))

    def told(self) -> None:
        """Say in a line what became of a module's benchmarks, once they are through."""
        if self._outcome:
            _clear()
            counts = ", ".join(f"{count} {word}" for word, count in self._outcome.items() if count)
            log.info(f"{self._module}: {counts}")
        self._module, self._outcome = "", Counter()

    def running(self, every: Any) -> Any:
        """Wrap asv's `run_benchmarks`: a module's line comes also where a commit ends."""

        @functools.wraps(every)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            try:
                return every(*args, **kwargs)
            finally:
                self.told()

        return wrapped


def _clear() -> None:
    if sys.stdout.isatty():
        print(_CLEAR, end="")
        log._needs_newline = False


def outcome(values: list[float | None]) -> Counter[str]:
    """Count the values of a benchmark, those that do not apply, and those that failed."""
    failed = sum(value is None for value in values)
    skipped = sum(isinstance(value, float) and math.isnan(value) for value in values)
    return Counter({"measured": len(values) - failed - skipped, "n/a": skipped, "FAILED": failed})


def reasons(said: str) -> list[str]:
    """Return why configurations failed, each reason once: the last line of what each of them said."""
    last = (text.strip().rpartition("\n")[2] for text in said.split("\n\nFor parameters: "))
    return list(dict.fromkeys(filter(None, last)))


def _with_reason(create: Any) -> Any:
    @functools.wraps(create)
    def wrapped(self: ForkServer, name: str, *args: Any, **kwargs: Any) -> tuple[str | None, str]:
        """Prepare a class of benchmarks; if that fails, say why, which asv does not."""
        folder, said = create(self, name, *args, **kwargs)
        if folder is None:
            why = said.rpartition("asv: setup_cache failed")[0].strip().rpartition("\n")[2]
            log.error(f"{name.partition('.')[0]} cannot be measured: {why or said}")
        return folder, said

    return wrapped


def features() -> tuple[Feature, ...]:
    """Return what puts this in the place of asv's lines and tables, unless those are asked for."""
    progress = Progress()
    reasons_told = Feature(
        "why a class cannot be prepared",
        (Patch("asv.runner:ForkServer.create_setup_cache", _with_reason, "self benchmark_id"),),
    )
    short = Feature(
        "a line a module in place of asv's tables",
        (
            Patch("asv.runner:log_benchmark_result", lambda _: progress.ends, "source be04e79c"),
            Patch("asv.commands.run:run_benchmarks", progress.running, "benchmarks env"),
            Patch("asv.runner:log", lambda _: progress, "object Log"),
            Patch("asv.commands.publish:log", lambda _: progress, "object Log"),
        ),
    )
    return (reasons_told,) if tables() else (reasons_told, short)
