"""Runs all tests on a device, and prints one table: `python -m tests.gpu`, which is `make test-gpu`.

First come those that may share the GPU, side by side; then those that must be the only process on it, and all others,
which time or profile, one by one. Words are pytest's; with -x the first failure ends all.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tabulate import tabulate

from kernelwatch.instrument import prebuild

#: Files of this folder that may share the GPU. Each process gets a dozen tests at first: the long ones come last.
TOGETHER = ("instructions", "matrices", "launches", "fuzz", "tools", "kernels")

#: Those whose commands find another process on the GPU, if the one of the tests has been there.
ONLY = ("strangers",)

#: ptxcount, a plugin of pytest's, is imported before pytest can rewrite its assertions: it has none that a test shows.
OPTIONS = "-q --durations=5 -W ignore::pytest.PytestAssertRewriteWarning"

#: Side by side: each process has a context, and these are made one at a time.
PROCESSES = min(14, os.cpu_count() or 1)


class Table:
    """A plugin of pytest's that counts tests by their file, and keeps the rows that they hand over."""

    def __init__(self) -> None:
        self.passed: dict[str, list[int]] = {}
        self.rows: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take notes of a test that has run."""
        counts = self.passed.setdefault(report.nodeid.partition("::")[0], [0, 0])
        if report.when == "call" or report.outcome != "passed":
            counts[0] += report.outcome == "passed"
            counts[1] += 1
            self.rows += [value for name, value in report.user_properties if name == "held"]

    def __str__(self) -> str:
        files = [(f"tests passed: {file}", good, total) for file, (good, total) in self.passed.items()]
        return str(tabulate(self.rows + files, ["what", "held", "of"], "github"))


def main() -> int:
    """Run all parts."""
    table, begin, codes = Table(), time.monotonic(), [0]
    prebuild.compile_for_device()  # on all processors, before CUDA is initialised
    together, only = ([f"tests/gpu/test_{name}.py" for name in names] for names in (TOGETHER, ONLY))
    alone = sorted({f"tests/gpu/{path.name}" for path in Path(__file__).parent.glob("test_*.py")} - {*together, *only})
    for files, processes in ((together, PROCESSES), (only, 1), (alone, 0)):
        how = ["--numprocesses", str(processes)]
        if not (any(codes) and "-x" in sys.argv):
            words = [*OPTIONS.split(), *how, *sys.argv[1:], *files]
            codes.append(pytest.main(words, plugins=[table]))
    print(f"\n{table}\n\n{time.monotonic() - begin:.0f} s")
    return max(map(int, codes))


if __name__ == "__main__":
    sys.exit(main())
