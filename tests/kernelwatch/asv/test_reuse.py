"""What a run knows of earlier ones, and what it answers in place of asv's processes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv.benchmarks import Benchmarks
from asv.results import Results
from asv.runner import BenchmarkResult
from asv.util import write_json

from kernelwatch import suite
from kernelwatch.asv import agent, reuse
from kernelwatch.asv.agent import Answer
from kernelwatch.asv.plans import plan as plans
from kernelwatch.asv.plans.plan import Checked, Configuration, Entry, Plan, Stored
from kernelwatch.asv.reuse import Reuse
from kernelwatch.store import folders, record
from kernelwatch.store.record import measurement
from kernelwatch.store.run_record import RunRecord, skip_reasons

NAME = "time_copy.OffsetCopy"
TIME, RATIO = suite.TOGETHER[NAME]
CASES = ["one", "two"]
OLD, NEW = "b" * 40, "c" * 40
MEASURED = datetime(2026, 11, 1, 12, 0, 30, tzinfo=timezone.utc)
ENVIRONMENT = "virtualenv-py3"


def _store(folder: Path, commit: str = OLD, **changes: Any) -> None:
    """Two configurations of one class as a run leaves them, with a line of fingerprints."""
    write_json(str(folder / "gpu" / "machine.json"), {"machine": "gpu"}, 1)
    results = Results({"machine": "gpu"}, {}, commit, 0, "3", changes.get("environment", ENVIRONMENT), {})
    for name, value in ((TIME, 2.0), (RATIO, 0.5)):
        described = {"name": name, "version": "3", "params": [[f"'{case}'" for case in CASES]], "param_names": ["case"]}
        values = [value, changes.get("second", value)]
        count = changes.get("samples", 20)
        samples = [None if each is None or math.isnan(each) else [each] * count for each in values]
        found = BenchmarkResult(values, samples, [1, 1], 0, "", None)
        results.add_result(described, found, record_samples=True, started_at=changes.get("began", MEASURED))
    results.save(str(folder))
    line = {
        "commit": commit,
        "started": "2026-11-01T12:00:00+00:00",
        "ended": "2026-11-01T12:01:00+00:00",
        "fingerprints": {NAME: {case: f"{case}-print" for case in changes.get("measured", CASES)}},
        "reused": {},
    }
    line |= {"run": changes["run"]} if "run" in changes else {}
    with (folder / "gpu" / record.FINGERPRINTS_FILE).open("a") as file:
        file.write(json.dumps(line) + "\n")


def _reuse(
    folder: Path, *, is_on: bool = True, selected: tuple[str, ...] = (TIME, RATIO), bench: str = ""
) -> tuple[Reuse, RunRecord]:
    described = {TIME: {"type": "time", "rounds": 2, "repeat": 10}}
    asked = [
        {"name": name, "params": [[f"'{case}'" for case in CASES]], **described.get(name, {"type": "track"})}
        for name in selected
    ]
    benchmarks = Benchmarks(SimpleNamespace(benchmark_dir=""), asked, bench)
    known = {"machine_params": {"machine": "gpu"}, "benchmarks": benchmarks}
    kept = RunRecord()
    return Reuse(folder, known, kept, is_on=is_on), kept


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Entry]]:
    """What a run of NEW is told."""

    def found(commit: str | None = NEW, **how: Any) -> dict[str, Entry]:
        monkeypatch.setenv(plans.STORED, str(tmp_path / "stored"))
        _reuse(tmp_path, **how)[0].prepare(commit, ENVIRONMENT)
        known = plans.stored()
        assert isinstance(known, Stored)
        return known.entries

    return found


def _key(case: str) -> str:
    return plans.key(NAME, f"{case}-print")


def test_entries(tmp_path: Path, entries: Callable[..., dict[str, Entry]]) -> None:
    """Both configurations, with samples, ratios and a threshold; those of the newest run with that fingerprint."""
    _store(tmp_path)
    one = Entry(OLD, {TIME: [2.0] * 20, RATIO: [0.5] * 20}, 0.01)
    assert entries() == dict.fromkeys(map(_key, CASES), one)
    assert entries(selected=(TIME,)) == dict.fromkeys(map(_key, CASES), Entry(OLD, {TIME: [2.0] * 20}, 0.01))
    _store(tmp_path, "d" * 40, measured=["two"])
    found = {key: (entry.commit, entry.run) for key, entry in entries().items()}
    assert found == {_key("one"): (OLD, 0), _key("two"): ("d" * 40, 1)}


def test_stored_and_local(tmp_path: Path, entries: Callable[..., dict[str, Entry]]) -> None:
    """Numbers of both folders are known; of two measurements of one configuration, the local one's."""
    _store(tmp_path)
    _store(folders.local(tmp_path), "d" * 40, measured=["two"])
    assert {key: entry.commit for key, entry in entries().items()} == {_key("one"): OLD, _key("two"): "d" * 40}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"commit": NEW}, [], id="the commit's own times: they are measured again"),
        pytest.param({"environment": "virtualenv-py3-other"}, [], id="another environment"),
        pytest.param({"began": MEASURED.replace(hour=13)}, [], id="a later run has replaced the numbers"),
        pytest.param({"second": math.nan}, ["one"], id="skipped there"),
        pytest.param({"second": None}, ["one"], id="failed there"),
        pytest.param({"measured": ["two"]}, ["two"], id="the other was itself reused"),
        pytest.param({"samples": 40}, [], id="more rounds"),
        pytest.param({"samples": 10}, [], id="fewer rounds"),
        pytest.param({"is_on": False}, [], id="a run that measures everything"),
        pytest.param({"of": None}, [], id="a run of the working tree"),
        pytest.param({"selected": ("time_copy.StrideCopy.time_back_to_back",)}, [], id="of another benchmark"),
    ],
)
def test_what_is_not_told(
    changes: dict[str, Any], expected: list[str], tmp_path: Path, entries: Callable[..., dict[str, Entry]]
) -> None:
    """Numbers whose conditions are not known, that are none, or that the run does not ask for."""
    how = {name: changes[name] for name in {"is_on", "selected"} & changes.keys()}
    _store(tmp_path, **{name: changes[name] for name in changes.keys() - how.keys() - {"of"}})
    assert set(entries(changes.get("of", NEW), **how)) == set(map(_key, expected))


@pytest.mark.parametrize(
    ("bench", "places"),
    [("", [0, 1]), (f"{TIME}.'two'", [1]), (RATIO, [0, 1]), ("track_compiled", [])],
)
def test_what_is_asked_for_is_told(
    bench: str, places: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configurations that --bench selects of any benchmark of a class; of other classes none."""
    monkeypatch.setenv(plans.STORED, str(tmp_path / "stored"))
    _reuse(tmp_path, bench=bench)[0].prepare(NEW, ENVIRONMENT)
    selected = plans.stored().selected
    assert selected is not None
    assert {name: each for name, each in selected.items() if each} == ({NAME: places} if places else {})


def test_its_own_counts_are_told(tmp_path: Path) -> None:
    """A commit that is counted again executes nothing but the share that is checked."""
    group = "track_counted.OffsetCopy"
    name = suite.TOGETHER[group][0]
    write_json(str(tmp_path / "gpu" / "machine.json"), {"machine": "gpu"}, 1)
    results = Results({"machine": "gpu"}, {}, NEW, 0, "3", ENVIRONMENT, {})
    described = {"name": name, "version": "1", "params": [["'one'"]], "param_names": ["case"]}
    results.add_result(described, BenchmarkResult([4.0], [None], [None], 0, "", None), started_at=MEASURED)
    results.save(str(tmp_path))
    line = {"commit": NEW, "run": "a", "fingerprints": {group: {"one": "print"}}, "reused": {}}
    (tmp_path / "gpu" / record.FINGERPRINTS_FILE).write_text(json.dumps(line) + "\n")
    run = {"run": "a", "commits": [NEW], "began": {NEW: {name: BEGAN}}}
    (tmp_path / "gpu" / record.FILE).write_text(json.dumps(run) + "\n")
    found = dict(_reuse(tmp_path, selected=(name,))[0]._entries(tmp_path, NEW, ENVIRONMENT))
    assert found == {plans.key(group, "print"): Entry(NEW, {name: 4.0})}


#: When asv began with what is stored, in milliseconds.
BEGAN = int(MEASURED.timestamp() * 1000)


def _record(run: str, began: int = BEGAN, *cases: str) -> dict[str, Any]:
    selected = {"selected": {TIME: [f"'{case}'" for case in cases]}} if cases else {}
    return {"run": run, "commits": [OLD], "began": {OLD: {TIME: began}}, **selected}


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        pytest.param([_record("a")], ["one", "two"], id="its numbers are stored"),
        pytest.param([_record("a", BEGAN - 1), _record("b")], [], id="a run of the same second has replaced them"),
        pytest.param([_record("a"), _record("b", BEGAN + 1)], ["one", "two"], id="results of a later one are not here"),
        pytest.param([_record("a", BEGAN - 1), _record("b", BEGAN, "two")], ["one"], id="one of them was replaced"),
        pytest.param([_record("a", BEGAN - 1, "one"), _record("b", BEGAN, "two")], ["one"], id="one was its part"),
        pytest.param([_record("b")], [], id="no record of it"),
    ],
)
def test_identity(
    runs: list[Any], expected: list[str], tmp_path: Path, entries: Callable[..., dict[str, Entry]]
) -> None:
    """A fingerprint is of a stored number if the run that wrote the one wrote the other, whatever the time was."""
    _store(tmp_path, run="a")
    (tmp_path / "gpu" / record.FILE).write_text("".join(f"{json.dumps(run)}\n" for run in runs))
    assert set(entries()) == set(map(_key, expected))


def test_of_the_run_under_way(tmp_path: Path) -> None:
    """What it measured of one commit it takes for the next, though its record is not written yet."""
    _store(tmp_path, measured=[])
    run, kept = _reuse(tmp_path)
    for case in CASES:
        kept.note_configuration(OLD, NAME, Configuration(case, f"{case}-print"))
    kept.note(OLD, TIME, "")
    for began, expected in ((BEGAN - 1, set()), (BEGAN, {_key(case) for case in CASES})):
        kept.note_stored(OLD, TIME, began, dict.fromkeys(CASES, 10))
        assert {key for key, _ in run._entries(tmp_path, NEW, ENVIRONMENT)} == expected


@pytest.mark.parametrize(
    ("options", "variable", "expected"),
    [
        ({"record_samples": True, "bench": ["time_"], "quick": False, "attribute": None}, "", True),
        *(
            ({name: True}, "", False)
            for name in ("quick", "attribute", "profile", "append_samples", "interleave_rounds", "dry_run")
        ),
        ({}, "1", False),
    ],
)
def test_is_wanted(options: dict[str, Any], variable: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants other samples, a profile or turns gets them measured."""
    monkeypatch.setenv(reuse.MEASURE_ALL, variable)
    assert reuse.is_wanted(options) is expected


def _planned(folder: Path) -> None:
    times = [{"samples": [seconds], "number": 1} for seconds in (1.0, 2.0)]
    answers: dict[str, list[Any]] = {TIME: times, RATIO: [{"samples": [0.5]}]}
    ones = [
        Configuration("one", "p1", ("a" * 64, "k float32", "sm_90"), OLD, "", answers),
        Configuration("two", "p2", ("b" * 64, "k float64", "sm_90")),
        Configuration("three", skipped="this commit lacks it: kernel 'k'"),
    ]
    Plan({NAME: ones}, [Checked(f"{NAME}(two)", 1.02, 0.01)]).write(folder)


def test_answers(tmp_path: Path) -> None:
    """A round each what its process would return, a skip with its reason; what is measured is run. All is recorded."""
    assert _reuse(tmp_path)[0].answer(NEW, f"{TIME}-0", tmp_path) is None, "without a plan asv's processes run"
    _planned(tmp_path)
    run, kept = _reuse(tmp_path)
    first, second, again, ratio = (run.answer(NEW, f"{name}-0", tmp_path) for name in (TIME, TIME, TIME, RATIO))
    assert [found and found[0] for found in (first, second, ratio)] == [
        {"samples": [1.0], "number": 1},
        {"samples": [2.0], "number": 1},
        {"samples": [0.5]},
    ]
    assert again == first
    assert run.answer(NEW, f"{TIME}-1", tmp_path) is None
    skipped = run.answer(NEW, f"{TIME}-2", tmp_path)
    assert skipped is not None
    assert math.isnan(skipped[0])
    assert skip_reasons(skipped[1]) == {"this commit lacks it: kernel 'k'": 1}
    assert run.answer(NEW, "time_copy.Unknown.time_x-0", tmp_path) is None
    (line,) = kept.fingerprint_lines()
    assert (line["fingerprints"], line["reused"]) == ({NAME: {"two": "p2"}}, {NAME: {OLD: ["one"]}})
    assert kept.line()["checks"] == [
        {"commit": NEW, "checked": [{"configuration": f"{NAME}(two)", "ratio": 1.02, "threshold": 0.01}]}
    ]


def test_skips_of_what_the_compiler_made(tmp_path: Path) -> None:
    """The plan alone knows the benchmarks: a kernel that lacks an element type needs no process to say so."""
    made = "track_compiled.Compiled.track_registers"
    ones = [Configuration("one", answers={made: [8]}), Configuration("two", skipped="this commit lacks it: no int8")]
    Plan({"track_compiled.Compiled": ones}).write(tmp_path)
    run, _ = _reuse(tmp_path)
    assert run.answer(NEW, f"{made}-0", tmp_path) == (8, "")
    skipped = run.answer(NEW, f"{made}-1", tmp_path)
    assert skipped is not None
    assert skip_reasons(skipped[1]) == {"this commit lacks it: no int8": 1}


@pytest.mark.parametrize(
    ("answered", "returned", "said", "code"),
    [
        (Answer([2.0, 3.0], "said"), [2.0, 3.0], "said", 0),
        (Answer(said="said\n", skipped="no room"), None, "said\nasv: skipped: NotImplementedError('no room')", 0),
        (Answer(said="Traceback", failed="WrongOutputError: 7"), None, "Traceback", 1),
    ],
)
def test_the_agent_needs_no_process(
    answered: Answer, returned: Any, said: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is neither stored nor skipped the commit's agent measures, ratios too; without one a process is run."""
    asked: list[Any] = []

    def ask(*question: Any) -> Answer:
        asked.append(question)
        return answered

    monkeypatch.setattr(agent, "ask", ask)
    Plan({NAME: [Configuration("one", "p1"), Configuration("two", "p2")]}).write(tmp_path)
    run, _ = _reuse(tmp_path)
    for name in (TIME, RATIO):
        found = run.answer(NEW, f"{name}-1", tmp_path)
        assert found is not None
        result = reuse._result({"name": name, "params": []}, 1, *found)
        assert (result.samples, result.stderr, result.errcode) == ([returned], said, code)
    assert asked == [(tmp_path, TIME, 1), (tmp_path, RATIO, 1)]
    monkeypatch.setattr(agent, "ask", lambda *_: None)
    assert run.answer(NEW, f"{TIME}-1", tmp_path) is None


def test_what_was_held_back_is_no_source(tmp_path: Path) -> None:
    """A time that a slow GPU took is measured the next time."""
    _planned(tmp_path)
    run, kept = _reuse(tmp_path)
    run.answer(NEW, f"{TIME}-1", tmp_path)
    said = json.dumps({"about": "held back", "reason": "hot", "params": ["two"]})
    kept.note(NEW, TIME, f"coalescing-watch: {said}")
    assert [line["fingerprints"] for line in kept.fingerprint_lines()] == [{NAME: {}}]


def test_origins(tmp_path: Path) -> None:
    """The last line about a configuration counts: measured after all, it has no origin."""
    lines = [
        {"commit": NEW, "fingerprints": {}, "reused": {NAME: {OLD: ["one", "two"]}}},
        {"commit": NEW, "fingerprints": {NAME: {"two": "p2"}}, "reused": {}},
    ]
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / record.FINGERPRINTS_FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert record.origins(tmp_path, "gpu") == {(NEW, measurement(NAME)): {"one": OLD}}
