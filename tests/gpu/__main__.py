"""Run all tests on a device, and print one table: `python -m tests.gpu`, or `make test-gpu`.

Tests that may share the GPU run first, in parallel. Tests that time, profile or need the GPU alone follow, one by one.
Arguments go to pytest; with -x the first failure ends the run.
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

#: Files that may share the GPU. Each process gets a dozen tests at first, so long ones come last.
TOGETHER = ("instructions", "matrices", "launches", "fuzz", "tools", "kernels")

#: Files whose commands refuse a GPU that another process uses, such as a parent process with a context.
ONLY = ("strangers",)

#: The warning is harmless: pytest cannot rewrite the assertions of ptxcount's plugin, and the plugin has none.
OPTIONS = "-q --durations=5 -W ignore::pytest.PytestAssertRewriteWarning"

#: Number of parallel processes. Processes create their contexts one at a time.
PROCESSES = min(14, os.cpu_count() or 1)


class Table:
    """A pytest plugin that counts tests by file and collects the rows of `report_share`."""

    def __init__(self) -> None:
        self.passed: dict[str, list[int]] = {}
        self.rows: list[Any] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        counts = self.passed.setdefault(report.nodeid.partition("::")[0], [0, 0])
        if report.when == "call" or report.outcome != "passed":
            counts[0] += report.outcome == "passed"
            counts[1] += 1
            self.rows += [value for name, value in report.user_properties if name == "held"]

    def __str__(self) -> str:
        files = [(f"tests passed: {file}", good, total) for file, (good, total) in self.passed.items()]
        return str(tabulate(self.rows + files, ["what", "held", "of"], "github"))


def main() -> int:
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
