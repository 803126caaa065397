"""Whose a stored number is, and how its samples are read: as the record of its run says, whatever the clock did."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.project import ROOT
from kernelwatch.store import record
from kernelwatch.store.results import History
from tests.stored import BASE, HEAD, TIME, Suite, write

#: A clock that is set back by an hour once a variable says so.
CLOCK = """
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
extern "C" int clock_gettime(clockid_t which, struct timespec *now) noexcept {
    int failed = syscall(SYS_clock_gettime, which, now);
    if (which == CLOCK_REALTIME && getenv("SET_BACK")) now->tv_sec -= 3600;
    return failed;
}
"""


#: Two moments that asv notes, and what the clock says at the second.
MOMENTS = """
import asv.runner, os, time
from kernelwatch.asv import plugin
plugin.setup()
datetime, timezone = asv.runner.datetime.datetime, asv.runner.datetime.timezone
first = datetime.now(timezone.utc)
os.environ["SET_BACK"] = "1"
print(first.timestamp(), datetime.now(timezone.utc).timestamp(), time.time())
"""


def test_a_clock_set_back(tmp_path: Path) -> None:
    """The moments that asv stores, and the record's, follow one another all the same."""
    source, library = tmp_path / "clock.cpp", tmp_path / "clock.so"
    source.write_text(CLOCK)
    subprocess.run(["g++", "-shared", "-fPIC", "-o", library, source], check=True)
    command = ["env", f"LD_PRELOAD={library}", sys.executable, "-c", MOMENTS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    first, second, wall = map(float, done.stdout.split())
    assert first <= second < first + 60
    assert wall < first - 3000


#: Moments of asv's, in milliseconds, and runs of before there were identities, which have seconds.
FIRST, LATER = 1_767_312_060_000, 1_767_398_460_000
OLD = {"commits": [BASE], "started": "2026-01-02T00:00:00+00:00", "ended": "2026-01-02T00:05:00+00:00"}


def _run(run: str, moment: int, *cases: str, **more: Any) -> dict[str, Any]:
    """A run of a benchmark, of all or of some of its configurations."""
    selected = {"selected": {TIME: [f"'{case}'" for case in cases]}} if cases else {}
    return {**OLD, "run": run, "began": {BASE: {TIME: moment}}, **selected, **more}


def _took(run: str, moment: int, processes: dict[str, list[str]], *cases: str, name: str = TIME) -> dict[str, Any]:
    """A run whose processes took so many samples of configurations, as its record says."""
    return _run(run, moment, *cases, processes={BASE: {name: processes}})


#: What is asked -> the records, and those whose numbers are stored if asv began at LATER.
WROTE: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "nothing measured it": ([], []),
    "one run": ([_run("a", LATER)], ["a"]),
    "the last of two within a second": ([_run("a", LATER - 1), _run("b", LATER)], ["b"]),
    "the first, if its results came back": ([_run("a", LATER), _run("b", LATER + 1)], ["a"]),
    "another benchmark's": ([_run("a", LATER), _run("b", LATER, began={BASE: {"x": LATER}})], ["a"]),
    "another commit's": ([_run("a", LATER), _run("b", LATER, began={HEAD: {TIME: LATER}})], ["a"]),
    "part by part": ([_run("a", FIRST, "one"), _run("b", LATER, "two")], ["a", "b"]),
    "part by part, in whichever order": ([_run("b", LATER, "two"), _run("a", FIRST, "one")], ["b", "a"]),
    "a part after all": ([_run("a", FIRST), _run("b", LATER, "two")], ["a", "b"]),
    "all after a part": ([_run("a", FIRST, "one"), _run("b", LATER)], ["b"]),
    "all after all and a part": ([_run("a", FIRST), _run("b", FIRST + 1, "one"), _run("c", LATER)], ["c"]),
    "a part, of which another run took a control": (
        [_run("a", FIRST, "one"), _run("b", FIRST + 1, selected={"x": []}), _run("c", LATER, "two")],
        ["a", "c"],
    ),
    "none that is known": ([_run("a", FIRST), _run("b", FIRST + 1, "one")], []),
}


@pytest.mark.parametrize("what", WROTE)
def test_wrote(what: str) -> None:
    """By asv's own moment, to the millisecond; a part does not take the place of the rest."""
    runs, expected = WROTE[what]
    assert [run["run"] for run in record.wrote(runs, BASE, TIME, LATER)] == expected


@pytest.mark.parametrize(("began", "found"), [(FIRST, [OLD]), (LATER, [])])
def test_old_records_are_read_by_time(began: int, found: list[Any]) -> None:
    """They have whole seconds and no identity; beside new ones they stay whose they were."""
    assert record.wrote([OLD, _run("a", LATER - 1)], BASE, TIME, began) == found


def test_selects() -> None:
    """The configurations that a run selected, as reports print them; all, if it selected none by name."""
    assert [record.selects(_run("a", FIRST, *cases), TIME, "one") for cases in ((), ("one",), ("two",))] == [1, 1, 0]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], {"one": [10] * 4, "two": [10] * 4}),
        ([OLD], {"one": [10] * 4, "two": [10] * 4}),
        ([_took("a", FIRST, {"20 20": []})], {"one": [20, 20], "two": [20, 20]}),
        ([_took("a", FIRST, {"20 20": []}, name="x")], {"one": [10] * 4, "two": [10] * 4}),
        ([_took("a", FIRST, {"30 10": ["two"], "25 15": []})], {"one": [25, 15], "two": [30, 10]}),
        (
            [_took("a", FIRST - 1, {"40": []}, "one"), _took("b", FIRST, {"35 5": []}, "two")],
            {"one": [40], "two": [35, 5]},
        ),
    ],
)  # fmt: skip
def test_processes_are_as_the_record_says(runs: Any, expected: dict[str, list[int]], tmp_path: Path) -> None:
    """Not as the suite samples today; where no record says, a process has ten."""
    suite: Suite = {BASE: {TIME: {case: [float(n) for n in range(1, 41)] for case in ("one", "two")}}}
    began = {(BASE, TIME): datetime.fromtimestamp(FIRST / 1000, timezone.utc)}
    folder = write(tmp_path, suite, began=began) / "results" / "gpu"
    (folder / record.FILE).write_text("".join(f"{json.dumps(run)}\n" for run in runs))
    history = History("gpu", tmp_path)
    results = history.commit(BASE)
    assert results is not None
    found = {point.params["case"]: [len(each) for each in point.processes] for point in history.points(results, TIME)}
    assert found == expected
