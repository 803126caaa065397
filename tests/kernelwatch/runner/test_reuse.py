"""What a run knows of earlier ones, what of that is reused, and what is measured all the same."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from asv.results import Results
from asv.runner import BenchmarkResult
from asv.util import write_json

from kernelwatch.runner import commit_run, reuse
from kernelwatch.runner.protocol import Configuration, Difference, Entry, Task
from kernelwatch.runner.record import RunRecord
from kernelwatch.runner.reuse import Check
from kernelwatch.store import folders, noise, record
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import measurement_group
from tests.stored import documents

NAME = "time_copy.OffsetCopy"
TIME, RATIO = registry.current().together[NAME]
CASES = ["one", "two"]
OLD, NEW = "b" * 40, "c" * 40
MEASURED = datetime(2026, 11, 1, 12, 0, 30, tzinfo=timezone.utc)
#: The same in milliseconds, as asv stores it.
BEGAN = int(MEASURED.timestamp() * 1000)
ENVIRONMENT = "virtualenv-py3"
#: When a run that stored fingerprints began and ended.
MOMENTS = {"started": "2026-11-01T12:00:00+00:00", "ended": "2026-11-01T12:01:00+00:00"}


def _ones(count: int) -> list[Configuration]:
    """Configurations of a class, the last of which has no fingerprint."""
    prints = [*(f"f{place}" for place in range(count - 1)), ""]
    return [
        Configuration(group="time_a.A", place=place, params=str(place), fingerprint=each)
        for place, each in enumerate(prints)
    ]


def _known(places: Sequence[int]) -> Task:
    return Task(stored={"time_a.A": {f"f{place}": Entry(f"c{place}", {"b": place}) for place in places}})


@pytest.mark.parametrize(("known", "checks"), [(range(119), 3), (range(50), 1), (range(3), 1), (range(1), 1), ((), 0)])
def test_share(known: Sequence[int], checks: int) -> None:
    """A share of what is stored is measured, one at least; the rest is reused, and nothing that is not stored."""
    ones = _ones(120)
    measured: list[str] = []

    def measure(checks: Sequence[Check]) -> list[float | None]:
        measured.extend(check.one.params for check in checks)
        return [1.0] * len(checks)

    assert reuse.decide(ones, _known(known), measure) == []
    reused = {one.params: one for one in ones if one.reused}
    assert len(measured) == checks
    assert {*reused, *measured} == {str(place) for place in known}
    assert all((one.reused, one.numbers) == (f"c{name}", {"b": int(name)}) for name, one in reused.items())


@pytest.mark.parametrize(
    ("ratio", "threshold", "differs"),
    [(1.25, 0.25, False), (0.75, 0.25, False), (1.26, 0.25, True), (0.98, 0.01, True), (None, 1, True)],
)
def test_one_that_differs(ratio: float | None, threshold: float, differs: bool) -> None:
    """If one differs by more than its threshold, or cannot be measured, nothing is reused; its own are not foreign."""
    ones, known = _ones(120), _known(range(119))
    for entry in known.stored["time_a.A"].values():
        entry.threshold = threshold
    known.commit = "c5"
    differences = reuse.decide(ones, known, lambda checks: [ratio] + [1.0] * (len(checks) - 1))
    assert differences == [Difference("time_a.A(0)", ratio)] * differs
    assert sum(bool(one.numbers) for one in ones) == (0 if differs else 116)
    assert sum(bool(one.reused) for one in ones) == (0 if differs else 115), "those of c5 are its own"


def test_thresholds_of_times() -> None:
    """From 20 µs on, 1 %; below, 5 %."""
    assert list(map(noise.default_threshold, (noise.LONG, 0.99 * noise.LONG, 0.0))) == [0.01, 0.05, 0.05]


@pytest.mark.parametrize("count", [1, 7, 50, 80, 525])
def test_each_is_measured_again(count: int) -> None:
    """Within fifty runs each one is, and none a second time before the others; neighbours are measured together."""
    run_of = dict.fromkeys(range(count), 0)
    runs = math.ceil(count / math.ceil(reuse.SHARE * count))
    assert runs <= 50
    for run in range(1, runs + 1):
        assert 0 in run_of.values()
        ones = {place: Configuration(group="A", place=place, params="") for place in run_of}
        chosen = reuse.chosen([Check(ones[place], Entry("c", {}, run=found)) for place, found in run_of.items()])
        places = [check.one.place for check in chosen]
        assert run == runs or places == list(range(places[0], places[0] + len(places)))
        run_of |= dict.fromkeys(places, run)
    assert 0 not in run_of.values()


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
        **MOMENTS,
        "commit": commit,
        "fingerprints": {NAME: {case: f"{case}-print" for case in changes.get("measured", CASES)}},
        "reused": {},
    }
    line["run"] = f"run {commit}"
    taken: dict[str, dict[str, list[str]]] = {TIME: {" ".join(["10"] * (changes.get("samples", 20) // 10)): []}}
    run = {
        **MOMENTS,
        "run": line["run"],
        "commits": [commit],
        "began": {commit: {TIME: BEGAN}},
        "processes": {commit: taken},
    }
    for file, each in ((record.FINGERPRINTS_FILE, line), (record.RUNS_FILE, run)):
        with (folder / "gpu" / file).open("a") as text:
            text.write(json.dumps(each) + "\n")


Entries = Callable[..., dict[str, Entry]]


@pytest.fixture
def entries(tmp_path: Path) -> Entries:
    """What a run of NEW is told."""

    def found(commit: str = NEW, groups: dict[str, list[str]] | None = None) -> dict[str, Entry]:
        groups = groups or {NAME: [TIME, RATIO]}
        (of_group,) = reuse.known(tmp_path / "gpu", ENVIRONMENT, commit, groups, {NAME: 2}).values()
        return of_group

    return found


def _key(case: str) -> str:
    return f"{case}-print"


def test_entries(tmp_path: Path, entries: Entries) -> None:
    """Both configurations, with samples, ratios and a threshold; those of the newest run with that fingerprint."""
    _store(tmp_path)
    one = Entry(OLD, {TIME: [2.0] * 20, RATIO: [0.5] * 20}, 0.01)
    assert entries() == dict.fromkeys(map(_key, CASES), one)
    alone = Entry(OLD, {TIME: [2.0] * 20}, 0.01)
    assert entries(groups={NAME: [TIME]}) == dict.fromkeys(map(_key, CASES), alone)
    _store(tmp_path, "d" * 40, measured=["two"])
    found = {key: (entry.commit, entry.run) for key, entry in entries().items()}
    assert found == {_key("one"): (OLD, 0), _key("two"): ("d" * 40, 1)}


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
    ],
)
def test_what_is_not_told(changes: dict[str, Any], expected: list[str], tmp_path: Path, entries: Entries) -> None:
    """Numbers whose conditions are not known, or that are none."""
    _store(tmp_path, **changes)
    assert set(entries()) == set(map(_key, expected))


def test_its_own_counts_are_told(tmp_path: Path, entries: Entries) -> None:
    """A commit that is counted again executes nothing but the share that is checked."""
    group, name = "track_counted.OffsetCopy", "track_counted.OffsetCopy.track_load_sectors"
    write_json(str(tmp_path / "gpu" / "machine.json"), {"machine": "gpu"}, 1)
    results = Results({"machine": "gpu"}, {}, NEW, 0, "3", ENVIRONMENT, {})
    described = {"name": name, "version": "1", "params": [["'one'"]], "param_names": ["case"]}
    results.add_result(described, BenchmarkResult([4.0], [None], [None], 0, "", None), started_at=MEASURED)
    results.save(str(tmp_path))
    line = {**MOMENTS, "commit": NEW, "run": "a", "fingerprints": {group: {"one": "print"}}, "reused": {}}
    (tmp_path / "gpu" / record.FINGERPRINTS_FILE).write_text(json.dumps(line) + "\n")
    run = {"run": "a", "commits": [NEW], "began": {NEW: {name: BEGAN}}}
    (tmp_path / "gpu" / record.RUNS_FILE).write_text(json.dumps(run) + "\n")
    assert entries(groups={group: [name]}) == {"print": Entry(NEW, {name: 4.0})}
    assert entries(groups={group: [name, f"{group}.track_requests"]}) == {}, "it has none of a number that is asked for"


@pytest.mark.parametrize(("held_back", "expected"), [([], {"one", "two"}), (["hot"], {"two"})])
def test_of_the_run_under_way(held_back: list[str], expected: set[str], tmp_path: Path, entries: Entries) -> None:
    """What it measured of one commit it takes for the next; not of a slow GPU."""
    _store(tmp_path, measured=[])
    kept = RunRecord(OLD)
    kept.begin(TIME, BEGAN)
    for place, case in enumerate(CASES):
        one = Configuration(group=NAME, place=place, params=case, fingerprint=f"{case}-print", rounds=[10, 10])
        one.numbers, one.held_back = {TIME: [2.0] * 20}, held_back[: 1 - place]
        kept.heard.append((one, [TIME]))
    folders.CommitFiles(tmp_path / "gpu", OLD, ENVIRONMENT).save(
        {**documents(tmp_path)[OLD[:8]], "results": {}}, kept.lines()
    )
    assert set(entries()) == {_key(case) for case in expected}


@pytest.mark.parametrize(
    ("options", "variable", "expected"),
    [
        ({"record_samples": True, "bench": ["time_"], "quick": False, "attribute": None}, "", True),
        *(
            ({name: True}, "", False)
            for name in ("quick", "attribute", "append_samples", "interleave_rounds", "dry_run")
        ),
        ({}, "1", False),
    ],
)
def test_may_reuse(options: dict[str, Any], variable: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants other samples or turns gets them measured."""
    monkeypatch.setenv(commit_run.MEASURE_ALL, variable)
    assert commit_run.may_reuse(options) is expected


def test_record(tmp_path: Path) -> None:
    """Whose the numbers are, samples of each round, machine code, and why there are none; as it is read again."""
    kept = RunRecord(NEW, {"slice": "1g"})
    kept.begin(TIME, BEGAN, ["'p1'"])
    cubin = ("a" * 64, "k float32 -O3", "sm_90")
    told: list[dict[str, Any]] = [
        {"reused": OLD, "numbers": {TIME: [1.0, 2.0, 3.0]}, "rounds": [2, 1], "machine_code": cubin},
        {"fingerprint": "f1", "numbers": {TIME: [1.0]}, "rounds": [1], "machine_code": (*cubin, "b" * 64)},
        {"fingerprint": "f2", "numbers": {TIME: [1.0]}, "rounds": [2, 1], "held_back": ["hot"], "block": (64, 0)},
        {"skipped": "this commit lacks it: kernel 'k' <no>"},
        *({"failed": f"CompileError: µ\nmore {place}"} for place in range(2)),
    ]
    told[2]["machine_code"] = (*cubin[:2], "sm_80")
    for place, each in enumerate(told):
        kept.heard.append((Configuration(group=NAME, place=place, params=f"p, {place}", **each), [TIME]))
    folders.CommitFiles(tmp_path / "gpu", NEW, ENVIRONMENT).save({"results": {}}, kept.lines())
    (found,), (older, newer), (line,), _ = (record.read_records(tmp_path, "gpu", file) for file in kept.lines())
    assert (line["fingerprints"], line["reused"]) == ({NAME: {"p, 1": "f1"}}, {NAME: {OLD: ["p, 0"]}})
    assert (line["run"], line["started"], line["ended"]) == (found["run"], found["started"], found["ended"])
    assert (older["arch"], older["blocks"], "code" in older) == ("sm_80", {"k float32": [64, 0]}, False)
    assert (newer["cubins"], newer["code"]) == ({cubin[1]: cubin[0]}, {cubin[1]: "b" * 64})
    assert found["processes"] == {NEW: {TIME: {"2 1": [], "1": ["p, 1"]}}}
    assert [record.find_round_sizes(found, NEW, TIME, f"p, {place}", 3) for place in (0, 1)] == [(2, 1), (1,)]
    assert (found["began"], found["commits"]) == ({NEW: {TIME: BEGAN}}, [NEW])
    assert found["held_back"] == [{"commit": NEW, "configuration": f"{TIME}(p, 2)", "reasons": ["hot"]}]
    why = {"commit": NEW, "benchmark": TIME, "configurations": 1}
    assert found["skipped"] == [{**why, "reason": "this commit lacks it: kernel 'k' <no>"}]
    assert found["failed"] == [{**why, "configurations": 2, "reason": "CompileError: ?"}]
    assert found["selected"] == {TIME: ["'p1'"]}
    assert found["before"]["slice"] == "1g"
    assert {*found} >= {"nvcc", "asv", "asv_runner", "host", "ended"}


def test_origins(tmp_path: Path) -> None:
    """The last line about a configuration counts: measured after all, it has no origin."""
    lines = [
        {**MOMENTS, "commit": NEW, "fingerprints": {}, "reused": {NAME: {OLD: ["one", "two"]}}},
        {**MOMENTS, "commit": NEW, "fingerprints": {NAME: {"two": "p2"}}, "reused": {}},
    ]
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / record.FINGERPRINTS_FILE).write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert record.find_origins(tmp_path, "gpu", NEW) == {measurement_group(NAME): {"one": OLD}}
    assert record.find_origins(tmp_path, "gpu", OLD) == {}
