"""The process that measures a commit: its task, and the results from its messages."""

import itertools
import math
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv.benchmarks import Benchmarks
from asv.console import log
from asv.results import Results

from kernelwatch.runner import commit_run
from kernelwatch.runner.commit_run import CommitMeasurement
from kernelwatch.runner.protocol import Difference, Discovery, RoundStart, RunConfiguration, SourceLine, Task
from kernelwatch.runner.run_record import RunRecord
from kernelwatch.store import record
from tests.stored import read_rows

TIME, RATIO = "time_a.A.time_back_to_back", "track_control.A.track_copy_ratio"
COUNT, REGISTERS = "track_counted.A.track_sectors", "track_compiled.C.track_registers"
GROUPS = {"time_a.A": [TIME, RATIO], "track_counted.A": [COUNT], "track_compiled.C": [REGISTERS]}

CONF = SimpleNamespace(benchmark_dir="", branches=["main"], launch_method=None)


def _benchmark(name: str) -> dict[str, Any]:
    benchmark = {"name": name, "params": [["'x'", "'y'", "'z'"]], "param_names": ["k"], "version": "1", "code": ""}
    return benchmark | ({"rounds": 2, "version": "3"} if name == TIME else {})


SUITE = [_benchmark(name) for names in GROUPS.values() for name in names]


class FakeProcess:
    """A fake process of a commit, which sends given messages and keeps the received task."""

    def __init__(self, *messages: Any, suite: list[dict[str, Any]] = SUITE, problem: str = "") -> None:
        self.messages, self.discovery, self._problem = messages, Discovery(suite, GROUPS), problem

    def wait(self) -> str:
        return self._problem

    def send_task(self, task: Task) -> None:
        self.task = task

    def iter_messages(self) -> Any:
        return iter(self.messages)


def measure_commit(child: FakeProcess, folder: Path, regex: str = "", is_head: bool = False, **options: Any) -> Any:
    results = Results({"machine": "m"}, {}, "c" * 40, 0, "3", "py3", {})
    benchmarks = Benchmarks(CONF, SUITE, regex=regex or None)
    run_record = RunRecord("c" * 40)
    CommitMeasurement(results, benchmarks, GROUPS, options, folder, run_record, is_head).measure(nullcontext(child))  # type: ignore[arg-type]
    results.save(str(folder))
    (path,) = folder.glob("m/*.json")
    rows = {name: {**row, "errcode": results.errcode[name]} for name, row in read_rows(path).items()}
    return rows, run_record.collect_lines()


def _list_reasons(lines: Any) -> set[str]:
    return {failure["reason"] for failure in lines[record.RUNS_FILE][0]["failed"]}


def _configuration(group: str, index: int, **outcome: Any) -> RunConfiguration:
    return RunConfiguration(group=group, index=index, params="xyz"[index], **outcome)


#: Messages of a process that ends too early: configuration z, and the class of REGISTERS, have no outcome.
SAID = (
    Difference("time_a.A(x)", 1.25),
    Difference("track_counted.A(y)", None),
    RoundStart("time_a.A", 0),
    _configuration("time_a.A", 0, numbers={TIME: [1.23456789012, 3.0], RATIO: [2.5, 2.5]}, round_sizes=[1, 1]),
    _configuration("time_a.A", 1, skipped="no kernel"),
    _configuration("track_counted.A", 0, numbers={COUNT: 4.0}),
    _configuration("track_counted.A", 1, failed="a.cu(5): error: no"),
    SourceLine({"key": "k"}),
)


def test_outcomes_become_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips become NaN, and failures None. A configuration without an outcome failed. Differences are warnings."""
    errors, warnings = list[str](), list[str]()
    monkeypatch.setattr(log, "error", errors.append)
    monkeypatch.setattr(log, "warning", warnings.append)
    monkeypatch.setattr(commit_run, "time", SimpleNamespace(monotonic=itertools.count().__next__))
    results, lines = measure_commit(FakeProcess(*SAID, problem="it ended with -9"), tmp_path, record_samples=True)
    assert results[TIME]["samples"] == [[1.2345679, 3.0], None, None], "samples have eight digits"
    assert [math.isnan(results[name]["result"][1]) for name in (TIME, RATIO)] == [True, True]
    assert (results[COUNT]["result"], results[REGISTERS]["result"]) == ([4.0, None, None], None)
    (run,) = lines[record.RUNS_FILE]
    failed = [(failure["benchmark"], failure["reason"], failure["configurations"]) for failure in run["failed"]]
    without_outcome = {TIME: 1, RATIO: 1, COUNT: 1, REGISTERS: 3}
    expected = [(name, "it ended with -9", count) for name, count in without_outcome.items()]
    expected.append((COUNT, "a.cu(5): error: no", 1))
    assert sorted(failed) == sorted(expected)
    assert errors[0] == "track_counted.A(y) FAILED\na.cu(5): error: no"
    assert "selected" not in run
    assert lines[record.LINES_FILE] == [{"key": "k"}]
    why = "although its machine code and conditions are the same"
    assert warnings == [
        f"no stored time is reused: time_a.A(x) is 1.2500 times the stored number, {why}",
        f"no stored count is reused: track_counted.A(y) cannot be measured, {why}",
    ]
    assert [results[name]["duration"] for name in (TIME, RATIO, COUNT)] == [3 / 2, 3 / 2, 2], (
        "the clock ticks at each start and outcome; the benchmarks of a class share its seconds"
    )


@pytest.mark.parametrize("is_head", [True, False])
def test_missing_kernel_fails_only_at_head(is_head: bool, tmp_path: Path) -> None:
    """At other commits, it is skipped. A missing dtype or GPU is always skipped."""
    reasons = [
        "this commit does not have it: there is no kernel k",
        "this commit does not have the dtype: k has no int8",
        "no GPU here",
    ]
    messages = [_configuration("track_counted.A", index, skipped=reason) for index, reason in enumerate(reasons)]
    results, lines = measure_commit(FakeProcess(*messages), tmp_path, regex=COUNT, is_head=is_head)
    assert [value is None for value in results[COUNT]["result"]] == [is_head, False, False]
    assert results[COUNT]["errcode"] == is_head
    run = lines[record.RUNS_FILE][0]
    assert [failure["reason"] for failure in run.get("failed", ())] == reasons[: int(is_head)]
    assert sorted(skip["reason"] for skip in run["skipped"]) == sorted(reasons[int(is_head) :])


def test_missing_number_fails_the_benchmark(tmp_path: Path) -> None:
    messages = [_configuration("track_counted.A", index, numbers={COUNT: 1.0} if index else {}) for index in range(3)]
    results, _ = measure_commit(FakeProcess(*messages), tmp_path, regex=COUNT)
    assert (results[COUNT]["result"], results[COUNT]["errcode"]) == ([None, 1.0, 1.0], 1)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, None, [1.0, math.nan], [None]])
def test_only_finite_numbers_are_stored(number: Any, tmp_path: Path) -> None:
    """Another number fails its configuration with a reason. The configuration's other benchmarks are stored."""
    numbers = [{TIME: [1.0], RATIO: ratio} for ratio in (number, [2.0], [2.0])]
    messages = (_configuration("time_a.A", index, numbers=both) for index, both in enumerate(numbers))
    regex = r"A\.(time|track_copy)"
    results, lines = measure_commit(FakeProcess(*messages), tmp_path, regex=regex, record_samples=True)
    assert (results[TIME]["result"], results[RATIO]["result"]) == ([1.0, 1.0, 1.0], [None, 2.0, 2.0])
    assert _list_reasons(lines) == {f"{RATIO} has a number that is not finite; only finite numbers can be stored"}


#: Options of `asv run`, rounds and indices by class, benchmarks, and whether costs of lines are counted. By default,
#: only TIME has two rounds. Lines are counted at HEAD, if a counted benchmark is selected.
ASKED: dict[str, tuple[dict[str, Any], list[int], list[Any], list[str], bool]] = {
    "all": ({}, [2, 1, 1], [[0, 1, 2]] * 3, [TIME, RATIO, COUNT, REGISTERS], False),
    "HEAD": ({"is_head": True}, [2, 1, 1], [[0, 1, 2]] * 3, [TIME, RATIO, COUNT, REGISTERS], True),
    "compiled": ({"is_head": True, "regex": REGISTERS}, [1], [[0, 1, 2]], [REGISTERS], False),
    "quickly": ({"quick": True}, [1, 1, 1], [[0, 1, 2]] * 3, [TIME, RATIO, COUNT, REGISTERS], False),
    "rounds": ({"attribute": {"rounds": "3"}}, [3, 3, 3], [[0, 1, 2]] * 3, [TIME, RATIO, COUNT, REGISTERS], False),
    "a part": ({"regex": r"(A\.time_|sectors).*(x|z)"}, [2, 1], [[0, 2]] * 2, [TIME, COUNT], False),
    "a ratio": ({"regex": r"ratio.*y"}, [1], [[1]], [RATIO], False),
}


@pytest.mark.parametrize("case", ASKED)
def test_task_follows_options(case: str, tmp_path: Path) -> None:
    """The task has the selected rounds, configurations and benchmarks. A copy ratio has the version of its time."""
    options, rounds, indices, benchmarks, has_lines = ASKED[case]
    child = FakeProcess()
    _, lines = measure_commit(child, tmp_path, **options)
    task = child.task
    assert ([*task.rounds.values()], [*task.indices.values()], task.benchmarks) == (rounds, indices, benchmarks)
    assert task.versions == {group: "3" if group == "time_a.A" else "1" for group in task.indices}
    assert task.source_lines_folder == (str(tmp_path) if has_lines else "")
    assert task.commit == "c" * 40
    params = [f"'{'xyz'[index]}'" for index in indices[0]]
    # The record lists configurations only if some are not selected.
    selected = dict.fromkeys(benchmarks, params) if len(params) < 3 else {}
    assert lines[record.RUNS_FILE][0].get("selected", {}) == selected


@pytest.mark.parametrize("appends", [True, False])
def test_samples_are_kept_if_appended(appends: bool, tmp_path: Path) -> None:
    results, _ = measure_commit(FakeProcess(*SAID), tmp_path, append_samples=appends)
    assert (results[TIME].get("samples") is not None) == appends


@pytest.mark.parametrize("change", [{"params": [["'x'"]]}, {"version": "4"}])
def test_numbers_of_changed_benchmarks_are_not_stored(change: dict[str, Any], tmp_path: Path) -> None:
    process = FakeProcess(*SAID, suite=[{**benchmark, **change} for benchmark in SUITE])
    results, lines = measure_commit(process, tmp_path)
    assert {str(row["result"]) for row in results.values()} == {"None"}
    assert _list_reasons(lines) == {f"{TIME} was changed since the run began; run again"}
