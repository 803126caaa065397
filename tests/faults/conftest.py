"""Counts the attempts of the suite of faults, and makes the table of docs/evidence/faults.md."""

from __future__ import annotations

import os
import platform
from collections import Counter, defaultdict
from datetime import datetime, timezone
from pathlib import Path

import pytest
from tabulate import tabulate

from tests.faults import TABLE

PAGE = """# Faults

What is killed, filled up, torn or made up on purpose, and what must hold afterwards: nothing stored is lost, nothing
hangs, and one line says what is wrong, instead of a traceback. `make faults` tries all of it and writes this page;
`make test` tries some of each.

{now:%Y-%m-%d}, {machine}, Python {python}:

{table}

An attempt is one kill, one write without room, one made-up file or one odd call. Attempts that this machine could not
make, such as those that need PyCUDA, are not counted.
"""

#: Module -> outcome -> attempts. A test is one attempt unless it has recorded the property "attempts".
_counted: defaultdict[str, Counter[str]] = defaultdict(Counter)
#: Module -> its faults and what must hold.
_told: dict[str, tuple[str, str]] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Read what each module is about."""
    for item in items:
        if isinstance(item, pytest.Function) and item.path.parent == Path(__file__).parent:
            line = (item.module.__doc__ or "").partition("\n")[0]
            faults, colon, held = line.rstrip(".").partition(": ")
            assert colon, f"{item.path}: the first line names no faults, a colon, and what must hold"
            _told[item.path.name] = faults, held


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count a test that ran, or could not."""
    module = Path(report.location[0]).name
    if module in _told and (report.when == "call" or report.outcome != "passed"):
        attempts = dict(report.user_properties).get("attempts", 1)
        assert isinstance(attempts, int)
        _counted[module][report.outcome] += attempts


def pytest_sessionfinish() -> None:
    """Write the table."""
    if TABLE is None:
        return
    rows = [(*_told[module], each.total() - each["skipped"], each["failed"]) for module, each in _counted.items()]
    rows = sorted(rows, key=lambda row: -row[2])
    rows.append(("all", "", sum(row[2] for row in rows), sum(row[3] for row in rows)))
    table = tabulate(rows, headers=["faults", "what must hold", "attempts", "where it did not"], tablefmt="github")
    machine = f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores"
    python, now = platform.python_version(), datetime.now(timezone.utc)
    Path(TABLE).write_text(PAGE.format(table=table, machine=machine, python=python, now=now), encoding="utf-8")
