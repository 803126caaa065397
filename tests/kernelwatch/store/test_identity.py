"""The runs that measured a stored number, and its samples per round, from the run records."""

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.store import record
from tests.stored import BASE, HEAD, TIME, Suite, find_results, write, write_lines

#: Start times of a benchmark in milliseconds since 1970, as asv stores them: 2026-01-02 and a day later, at 00:01 UTC.
FIRST, LATER = 1_767_312_060_000, 1_767_398_460_000
#: A record without the identity of its run, as early versions wrote it.
OLD = {"commits": [BASE], "started": "2026-01-02T00:00:00+00:00", "ended": "2026-01-02T00:05:00+00:00"}


def _run(run: str, moment: int, *cases: str, **fields: Any) -> dict[str, Any]:
    """Return the record of a run of the given configurations of TIME, or of all if none is given."""
    selected = {"selected": {TIME: [f"'{case}'" for case in cases]}} if cases else {}
    return {**OLD, "run": run, "began": {BASE: {TIME: moment}}, **selected, **fields}


def _rounds(run: str, moment: int, processes: dict[str, list[str]], *cases: str, name: str = TIME) -> dict[str, Any]:
    """Return the record of a run. `processes` maps samples per round to the configurations with these numbers."""
    return _run(run, moment, *cases, processes={BASE: {name: processes}})


#: Case -> run records, and the runs behind stored values that began at LATER.
WROTE: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "no run": ([], []),
    "one run": ([_run("a", LATER)], ["a"]),
    "the last of two within a second": ([_run("a", LATER - 1), _run("b", LATER)], ["b"]),
    "the first, although a second began later": ([_run("a", LATER), _run("b", LATER + 1)], ["a"]),
    "the first, although a part began later": ([_run("a", LATER), _run("b", LATER + 1, "two")], ["a"]),
    "a second run of another benchmark": ([_run("a", LATER), _run("b", LATER, began={BASE: {"x": LATER}})], ["a"]),
    "a second run of another commit": ([_run("a", LATER), _run("b", LATER, began={HEAD: {TIME: LATER}})], ["a"]),
    "part by part": ([_run("a", FIRST, "one"), _run("b", LATER, "two")], ["a", "b"]),
    "part by part, latest first": ([_run("b", LATER, "two"), _run("a", FIRST, "one")], ["b", "a"]),
    "all, then a part": ([_run("a", FIRST), _run("b", LATER, "two")], ["a", "b"]),
    "a part, then all": ([_run("a", FIRST, "one"), _run("b", LATER)], ["b"]),
    "all, a part, then all": ([_run("a", FIRST), _run("b", FIRST + 1, "one"), _run("c", LATER)], ["c"]),
    "two parts, and a run of another benchmark": (
        [_run("a", FIRST, "one"), _run("b", FIRST + 1, selected={"x": []}), _run("c", LATER, "two")],
        ["a", "c"],
    ),
    "no run that began then": ([_run("a", FIRST), _run("b", FIRST + 1, "one")], []),
}


@pytest.mark.parametrize("case", WROTE)
def test_runs_behind_stored_values_are_found(case: str) -> None:
    """Values belong to the run that began with them; those that a partial run left, to earlier runs."""
    runs, expected = WROTE[case]
    assert [run["run"] for run in record.find_measuring_runs(runs, BASE, TIME, LATER)] == expected


#: Start and end of OLD, in milliseconds since 1970.
BEGAN, ENDED = FIRST - 60_000, FIRST + 240_000


@pytest.mark.parametrize(
    ("began", "is_read"),
    [(FIRST, True), (LATER, False), (BEGAN - 1_000, True), (BEGAN - 1_001, False), (ENDED + 1_000, True),
     (ENDED + 1_001, False)],
)  # fmt: skip
def test_old_records_are_read_by_time(began: int, is_read: bool) -> None:
    """A record without identity belongs to values that began while its run lasted, to a second."""
    assert record.find_measuring_runs([OLD, _run("a", LATER - 1)], BASE, TIME, began) == [OLD] * is_read


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], {"one": [20, 20], "two": [20, 20]}),
        ([OLD], {"one": [10] * 4, "two": [10] * 4}),  # 40 samples
        ([_rounds("a", FIRST, {"20 20": []})], {"one": [20, 20], "two": [20, 20]}),
        ([_rounds("a", FIRST, {"20 20": []}, name="x")], {"one": [20, 20], "two": [20, 20]}),  # of another benchmark
        # A wrong record: there are not 30 samples.
        ([_rounds("a", FIRST, {"20 10": []})], {"one": [20, 20], "two": [20, 20]}),
        ([_rounds("a", FIRST, {"30 10": ["two"], "25 15": []})], {"one": [25, 15], "two": [30, 10]}),
        (
            [_rounds("a", FIRST - 1, {"40": []}, "one"), _rounds("b", FIRST, {"35 5": []}, "two")],
            {"one": [40], "two": [35, 5]},
        ),
    ],
)  # fmt: skip
def test_rounds_are_as_recorded(runs: Any, expected: dict[str, list[int]], tmp_path: Path) -> None:
    """In old records, a round has ten samples. With a wrong record or none, as by plain asv, there are two rounds."""
    suite: Suite = {BASE: {TIME: {case: [float(n) for n in range(1, 41)] for case in ("one", "two")}}}
    began = {(BASE, TIME): datetime.fromtimestamp(FIRST / 1000, timezone.utc)}
    write_lines(write(tmp_path, suite, began=began) / "results" / "gpu" / record.RUNS_FILE, *runs)
    history, results = find_results(tmp_path, BASE)
    points = history.iter_points(results, TIME)
    assert {point.params["case"]: [len(samples) for samples in point.rounds] for point in points} == expected
