"""Reuse of stored numbers: loading, reuse, and checks by measuring some again."""

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
from kernelwatch.runner.protocol import Difference, MachineCode, RunConfiguration, StoredNumbers, Task
from kernelwatch.runner.reuse import Check
from kernelwatch.runner.run_record import RunRecord
from kernelwatch.store import default_thresholds, folders, record
from kernelwatch.suite import registry
from kernelwatch.suite.benchmark_names import measurement_group
from tests.stored import documents, write_lines

NAME = "time_copy.OffsetCopy"
TIME, RATIO = registry.current_suite().benchmarks_by_class[NAME]
CASES = ["one", "two"]
OLD, NEW = "b" * 40, "c" * 40
MEASURED = datetime(2026, 11, 1, 12, 0, 30, tzinfo=timezone.utc)
#: Start of the measurement in milliseconds since 1970, as asv stores it.
BEGAN = int(MEASURED.timestamp() * 1000)
ENVIRONMENT = "virtualenv-py3"
#: Start and end of a run that stored fingerprints.
MOMENTS = {"started": "2026-11-01T12:00:00+00:00", "ended": "2026-11-01T12:01:00+00:00"}


def _configurations(count: int) -> list[RunConfiguration]:
    """Return configurations of one class. The last one has no fingerprint."""
    prints = [*(f"f{index}" for index in range(count - 1)), ""]
    return [
        RunConfiguration(group="time_a.A", index=index, params=str(index), fingerprint=fingerprint)
        for index, fingerprint in enumerate(prints)
    ]


def _make_stored_task(indices: Sequence[int]) -> Task:
    return Task(stored={"time_a.A": {f"f{index}": StoredNumbers(f"c{index}", {"b": index}) for index in indices}})


@pytest.mark.parametrize(("stored", "checks"), [(range(119), 3), (range(50), 1), (range(3), 1), (range(1), 1), ((), 0)])
def test_share_of_stored_numbers_is_measured(stored: Sequence[int], checks: int) -> None:
    """A fiftieth of the stored numbers, rounded up, is measured again. The others are reused."""
    configurations = _configurations(120)
    measured: list[str] = []

    def measure(checks: Sequence[Check]) -> list[float | None]:
        measured.extend(check.configuration.params for check in checks)
        return [1.0] * len(checks)

    assert reuse.reuse_stored(configurations, _make_stored_task(stored), measure) == []
    reused = {configuration.params: configuration for configuration in configurations if configuration.reused}
    assert len(measured) == checks
    assert {*reused, *measured} == {str(index) for index in stored}
    for name, configuration in reused.items():
        assert (configuration.reused, configuration.numbers) == (f"c{name}", {"b": int(name)})


@pytest.mark.parametrize(
    ("ratio", "threshold", "differs"),
    [(1.25, 0.25, False), (0.75, 0.25, False), (1.26, 0.25, True), (0.98, 0.01, True), (None, 1, True)],
)
def test_one_difference_stops_reuse(ratio: float | None, threshold: float, differs: bool) -> None:
    """Of 119 stored numbers, 3 are checked, and 116 reused. A check that fails (None) is a difference, too."""
    configurations, task = _configurations(120), _make_stored_task(range(119))
    for entry in task.stored["time_a.A"].values():
        entry.threshold = threshold
    task.commit = "c5"
    differences = reuse.reuse_stored(configurations, task, lambda checks: [ratio] + [1.0] * (len(checks) - 1))
    assert differences == [Difference("time_a.A(0)", ratio)] * differs
    assert sum(bool(configuration.numbers) for configuration in configurations) == (0 if differs else 116)
    reused = sum(bool(configuration.reused) for configuration in configurations)
    assert reused == (0 if differs else 115), "the numbers of c5 are those of the commit itself"


def test_short_times_have_a_larger_threshold() -> None:
    long = default_thresholds.LONG_LAUNCH
    assert [*map(default_thresholds.default_threshold, (long, 0.99 * long, 0.0))] == [0.01, 0.05, 0.05]


@pytest.mark.parametrize("sizes", [[1], [7], [525], [525, 80, 35, 1], [1] * 60])
def test_every_number_is_measured_within_fifty_runs(sizes: list[int]) -> None:
    """The checks of a class are neighbours, and about a fiftieth of it."""
    keys = [(str(group), index) for group, size in enumerate(sizes) for index in range(size)]
    last_runs = dict.fromkeys(keys, 0)  # run 0: not yet measured again
    runs = math.ceil(len(keys) / math.ceil(reuse.RECHECKED_SHARE * len(keys)))
    assert runs <= 50
    for run in range(1, runs + 1):
        assert 0 in last_runs.values()
        checks = [
            Check(RunConfiguration(group=group, index=index, params=""), StoredNumbers("c", {}, run=last_run))
            for (group, index), last_run in last_runs.items()
        ]
        chosen_keys = [(check.configuration.group, check.configuration.index) for check in reuse.choose_checks(checks)]
        assert chosen_keys == sorted(chosen_keys, key=keys.index)
        for group, size in enumerate(sizes if run < runs else []):  # the last run also repeats the first ones
            indices = [index for name, index in chosen_keys if name == str(group)]
            assert indices == list(range(min(indices, default=0), max(indices, default=-1) + 1))
            assert len(indices) <= math.ceil(reuse.RECHECKED_SHARE * size) + 1
        last_runs |= dict.fromkeys(chosen_keys, run)
    assert 0 not in last_runs.values()


def _store(folder: Path, commit: str = OLD, **changes: Any) -> None:
    """Store two configurations of a class as a run does, with fingerprints and a run record.

    A change `second` is the second configuration's outcome. `measured` lists the configurations that are not reused.
    """
    write_json(str(folder / "gpu" / "machine.json"), {"machine": "gpu"}, 1)
    results = Results({"machine": "gpu"}, {}, commit, 0, "3", changes.get("environment", ENVIRONMENT), {})
    for name, value in ((TIME, 2.0), (RATIO, 0.5)):
        benchmark = {"name": name, "version": "3", "params": [[f"'{case}'" for case in CASES]], "param_names": ["case"]}
        values = [value, changes.get("second", value)]
        count = changes.get("samples", 20)
        samples = [None if median is None or math.isnan(median) else [median] * count for median in values]
        benchmark_result = BenchmarkResult(values, samples, [1, 1], 0, "", None)
        results.add_result(benchmark, benchmark_result, record_samples=True, started_at=changes.get("began", MEASURED))
    results.save(str(folder))
    identity = {**MOMENTS, "run": f"run {commit}"}
    prints = {NAME: {case: f"{case}-print" for case in changes.get("measured", CASES)}}
    line = {**identity, "commit": commit, "fingerprints": prints, "reused": {}}
    processes: Any = {commit: {TIME: {" ".join(["10"] * (changes.get("samples", 20) // 10)): []}}}
    run = {**identity, "commits": [commit], "began": {commit: {TIME: BEGAN}}, "processes": processes}
    for file, document in ((record.FINGERPRINTS_FILE, line), (record.RUNS_FILE, run)):
        with (folder / "gpu" / file).open("a") as text:
            text.write(json.dumps(document) + "\n")


Entries = Callable[..., dict[str, StoredNumbers]]


@pytest.fixture
def entries(tmp_path: Path) -> Entries:
    """Return a function that loads the reusable numbers for a run of a commit."""

    def load_entries(commit: str = NEW, groups: dict[str, list[str]] | None = None) -> dict[str, StoredNumbers]:
        groups = groups or {NAME: [TIME, RATIO]}
        (group_entries,) = reuse.load_reusable(tmp_path / "gpu", ENVIRONMENT, commit, groups, {NAME: 2}).values()
        return group_entries

    return load_entries


def test_stored_numbers_are_loaded(tmp_path: Path, entries: Entries) -> None:
    """Numbers are loaded by fingerprint, with their threshold. The newest commit of a fingerprint counts."""
    _store(tmp_path)
    both_numbers = StoredNumbers(OLD, {TIME: [2.0] * 20, RATIO: [0.5] * 20}, threshold=0.01)
    assert entries() == {"one-print": both_numbers, "two-print": both_numbers}
    time_alone = StoredNumbers(OLD, {TIME: [2.0] * 20}, threshold=0.01)
    assert entries(groups={NAME: [TIME]}) == {"one-print": time_alone, "two-print": time_alone}
    _store(tmp_path, "d" * 40, measured=["two"])
    origins = {key: (entry.commit, entry.run) for key, entry in entries().items()}
    assert origins == {"one-print": (OLD, 0), "two-print": ("d" * 40, 1)}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"commit": NEW}, [], id="the commit's own times"),
        pytest.param({"environment": "virtualenv-py3-other"}, [], id="another environment"),
        pytest.param({"began": MEASURED.replace(hour=13)}, [], id="a later run has replaced the numbers"),
        pytest.param({"second": math.nan}, ["one"], id="skipped there"),
        pytest.param({"second": None}, ["one"], id="failed there"),
        pytest.param({"measured": ["two"]}, ["two"], id="one was itself reused"),
        pytest.param({"samples": 40}, [], id="more rounds"),
        pytest.param({"samples": 10}, [], id="fewer rounds"),
    ],
)
def test_unusable_numbers_are_not_loaded(
    changes: dict[str, Any], expected: list[str], tmp_path: Path, entries: Entries
) -> None:
    _store(tmp_path, **changes)
    assert set(entries()) == {f"{case}-print" for case in expected}


def test_counts_of_the_commit_itself_are_reused(tmp_path: Path, entries: Entries) -> None:
    group, name = "track_counted.OffsetCopy", "track_counted.OffsetCopy.track_load_sectors"
    write_json(str(tmp_path / "gpu" / "machine.json"), {"machine": "gpu"}, 1)
    results = Results({"machine": "gpu"}, {}, NEW, 0, "3", ENVIRONMENT, {})
    described = {"name": name, "version": "1", "params": [["'one'"]], "param_names": ["case"]}
    results.add_result(described, BenchmarkResult([4.0], [None], [None], 0, "", None), started_at=MEASURED)
    results.save(str(tmp_path))
    line = {**MOMENTS, "commit": NEW, "run": "a", "fingerprints": {group: {"one": "print"}}, "reused": {}}
    write_lines(tmp_path / "gpu" / record.FINGERPRINTS_FILE, line)
    write_lines(tmp_path / "gpu" / record.RUNS_FILE, {"run": "a", "commits": [NEW], "began": {NEW: {name: BEGAN}}})
    assert entries(groups={group: [name]}) == {"print": StoredNumbers(NEW, {name: 4.0})}
    assert entries(groups={group: [name, f"{group}.track_requests"]}) == {}, "one count is missing"


@pytest.mark.parametrize(("reasons", "expected"), [([], {"one", "two"}), (["hot"], {"two"})])
def test_numbers_of_the_same_run_are_reused(
    reasons: list[str], expected: set[str], tmp_path: Path, entries: Entries
) -> None:
    """Numbers of a commit are loaded for the next commit of the run, unless the GPU was throttled."""
    _store(tmp_path, measured=[])
    run_record = RunRecord(OLD)
    run_record.begin_benchmark(TIME, BEGAN)
    for index, case in enumerate(CASES):
        configuration = RunConfiguration(
            group=NAME, index=index, params=case, fingerprint=f"{case}-print", round_sizes=[10, 10]
        )
        configuration.numbers, configuration.throttle_reasons = {TIME: [2.0] * 20}, reasons * (case == "one")
        run_record.configurations.append((configuration, [TIME]))
    folders.CommitFiles(tmp_path / "gpu", OLD, ENVIRONMENT).save(
        {**documents(tmp_path)[OLD[:8]], "results": {}}, run_record.collect_lines()
    )
    assert set(entries()) == {f"{case}-print" for case in expected}


@pytest.mark.parametrize(
    ("options", "variable", "expected"),
    [
        ({"record_samples": True, "bench": ["time_"], "quick": False, "attribute": None}, "", True),
        *(({key: True}, "", False) for key in ("quick", "attribute", "append_samples", "interleave_rounds", "dry_run")),
        ({}, "1", False),
    ],
)
def test_some_options_exclude_reuse(
    options: dict[str, Any], variable: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(commit_run.MEASURE_ALL, variable)
    assert commit_run.may_reuse(options) is expected


def test_run_record_is_read_as_written(tmp_path: Path) -> None:
    run_record = RunRecord(NEW, {"slice": "1g"})
    run_record.begin_benchmark(TIME, BEGAN, ["'p1'"])
    cubin = MachineCode("a" * 64, "k float32 -O3", "sm_90")
    outcomes: list[dict[str, Any]] = [
        {"reused": OLD, "numbers": {TIME: [1.0, 2.0, 3.0]}, "round_sizes": [2, 1], "machine_code": cubin},
        {
            "fingerprint": "f1",
            "numbers": {TIME: [1.0]},
            "round_sizes": [1],
            "machine_code": cubin._replace(code_sha256="b" * 64),
        },
        {
            "fingerprint": "f2",
            "numbers": {TIME: [1.0]},
            "round_sizes": [2, 1],
            "throttle_reasons": ["hot"],
            "block": (64, 0),
            "machine_code": cubin._replace(arch="sm_80"),
        },
        {"skipped": "this commit does not have it: kernel 'k' <no>"},
        *({"failed": f"CompileError: µ\nmore {index}"} for index in range(2)),
    ]
    for index, outcome in enumerate(outcomes):
        configuration = RunConfiguration(group=NAME, index=index, params=f"p, {index}", **outcome)
        run_record.configurations.append((configuration, [TIME]))
    folders.CommitFiles(tmp_path / "gpu", NEW, ENVIRONMENT).save({"results": {}}, run_record.collect_lines())
    (run,), (code_of_sm_80, code_of_sm_90), (line,), _ = (
        record.read_records(tmp_path, "gpu", file) for file in run_record.collect_lines()
    )
    # The fingerprint f2 is left out: the GPU was throttled.
    assert (line["fingerprints"], line["reused"]) == ({NAME: {"p, 1": "f1"}}, {NAME: {OLD: ["p, 0"]}})
    assert (line["run"], line["started"], line["ended"]) == (run["run"], run["started"], run["ended"])
    assert (code_of_sm_80["arch"], code_of_sm_80["blocks"]) == ("sm_80", {"k float32": [64, 0]})
    assert "code" not in code_of_sm_80
    assert (code_of_sm_90["cubins"], code_of_sm_90["code"]) == ({cubin.name: "a" * 64}, {cubin.name: "b" * 64})
    assert run["processes"] == {NEW: {TIME: {"2 1": [], "1": ["p, 1"]}}}, "the most frequent sizes list nothing"
    assert [record.find_round_sizes(run, NEW, TIME, f"p, {index}", 3) for index in (0, 1)] == [(2, 1), (1,)]
    assert (run["began"], run["commits"]) == ({NEW: {TIME: BEGAN}}, [NEW])
    assert run["held_back"] == [{"commit": NEW, "configuration": f"{TIME}(p, 2)", "reasons": ["hot"]}]
    skip = {"commit": NEW, "benchmark": TIME, "configurations": 1}
    assert run["skipped"] == [{**skip, "reason": "this commit does not have it: kernel 'k' <no>"}]
    assert run["failed"] == [{**skip, "configurations": 2, "reason": "CompileError: ?"}], "not ASCII"
    assert run["selected"] == {TIME: ["'p1'"]}
    assert run["before"]["slice"] == "1g"
    assert {*run} >= {"nvcc", "asv", "asv_runner", "host", "ended"}


def test_last_line_decides_the_origin(tmp_path: Path) -> None:
    """A configuration that was measured after a reuse has no origin."""
    lines = [
        {**MOMENTS, "commit": NEW, "fingerprints": {}, "reused": {NAME: {OLD: ["one", "two"]}}},
        {**MOMENTS, "commit": NEW, "fingerprints": {NAME: {"two": "p2"}}, "reused": {}},
    ]
    write_lines(tmp_path / "gpu" / record.FINGERPRINTS_FILE, *lines)
    assert record.find_origins(tmp_path, "gpu", NEW) == {measurement_group(NAME): {"one": OLD}}
    assert record.find_origins(tmp_path, "gpu", OLD) == {}
