"""The worker of a commit: its task, its messages, and the choice of its process."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv.benchmarks import Benchmarks
from asv.console import log
from asv.repo import NoSuchNameError
from asv.results import Results
from asv.util import ProcessError, UserError

from kernelwatch.instrument import machine
from kernelwatch.runner import (
    commit_process,
    commit_run,
    commit_worker,
    compiler,
    measure_counts,
    measure_times,
    revision_range,
    run,
)
from kernelwatch.runner.commit_process import PackageError
from kernelwatch.runner.commit_run import CommitMeasurement
from kernelwatch.runner.protocol import Difference, Discovery, RoundStart, RunConfiguration, SourceLine, Task
from kernelwatch.runner.run_record import RunRecord
from kernelwatch.store import folders, record

TIME, RATIO = "time_a.A.time_back_to_back", "track_control.A.track_copy_ratio"
COUNT, REGISTERS = "track_counted.A.track_sectors", "track_compiled.C.track_registers"
GROUPS = {"time_a.A": [TIME, RATIO], "track_counted.A": [COUNT], "track_compiled.C": [REGISTERS]}
CONF = SimpleNamespace(benchmark_dir="", branches=["main"], launch_method=None)


def _benchmark(name: str) -> dict[str, Any]:
    benchmark = {"name": name, "params": [["'x'", "'y'", "'z'"]], "param_names": ["k"], "version": "1", "code": ""}
    return benchmark | ({"rounds": 2, "version": "3"} if name == TIME else {})


SUITE = [_benchmark(name) for names in GROUPS.values() for name in names]


class FakeProcess:
    """A fake process of a commit that sends messages and keeps its task."""

    def __init__(self, *messages: Any, suite: list[dict[str, Any]] = SUITE, problem: str = "") -> None:
        self.messages, self.discovery, self.problem = messages, Discovery(suite, GROUPS), problem

    def send_task(self, task: Task) -> None:
        """Keep the task."""
        self.task = task

    def iter_messages(self) -> Any:
        """Return the messages."""
        return iter(self.messages)


def measure_commit(
    child: FakeProcess, folder: Path, regex: str = "", is_head: bool = False, **options: Any
) -> tuple[Any, Any]:
    """Return the rows of asv's results by benchmark, and the lines of the record."""
    results = Results({"machine": "m"}, {}, "c" * 40, 0, "3", "py3", {})
    benchmarks = Benchmarks(CONF, SUITE, regex=regex or None)
    run_record = RunRecord("c" * 40)
    CommitMeasurement(results, benchmarks, GROUPS, options, folder, run_record, is_head).measure(nullcontext(child))  # type: ignore[arg-type]
    results.save(str(folder))
    (path,) = folder.glob("m/*.json")
    document = json.loads(path.read_bytes())
    return {
        name: {**dict(zip(document["result_columns"], row, strict=False)), "errcode": results.errcode[name]}
        for name, row in document["results"].items()
    }, run_record.collect_lines()


def _configuration(group: str, place: int, **outcome: Any) -> RunConfiguration:
    return RunConfiguration(group=group, place=place, params="xyz"[place], **outcome)


SAMPLES = [1.23456789012, 3.0]
SAID = (
    Difference("time_a.A(x)", 1.25),
    Difference("time_a.A(y)", None),
    RoundStart("time_a.A", 0),
    _configuration("time_a.A", 0, numbers={TIME: SAMPLES, RATIO: [2.5, 2.5]}, rounds=[1, 1]),
    _configuration("time_a.A", 1, skipped="no kernel"),
    _configuration("track_counted.A", 0, numbers={COUNT: 4.0}),
    _configuration("track_counted.A", 1, failed="a.cu(5): error: no"),
    SourceLine({"key": "k"}),
)


def test_outcomes_become_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips are NaN, failures null; a configuration without an outcome failed. Digits are fixed."""
    errors, warnings = list[str](), list[str]()
    monkeypatch.setattr(log, "error", errors.append)
    monkeypatch.setattr(log, "warning", warnings.append)
    monkeypatch.setattr(commit_run, "time", SimpleNamespace(monotonic=itertools.count().__next__))
    results, lines = measure_commit(FakeProcess(*SAID, problem="it ended with -9"), tmp_path, record_samples=True)
    assert results[TIME]["samples"] == [[1.2345679, 3.0], None, None]
    assert [math.isnan(results[name]["result"][1]) for name in (TIME, RATIO)] == [True, True]
    assert (results[COUNT]["result"], results[REGISTERS]["result"]) == ([4.0, None, None], None)
    failed = [
        (failure["benchmark"], failure["reason"], failure["configurations"])
        for failure in lines[record.RUNS_FILE][0]["failed"]
    ]
    ended = [(TIME, 1), (REGISTERS, 3), (RATIO, 1), (COUNT, 1)]
    expected = [*((name, "it ended with -9", count) for name, count in ended), (COUNT, "a.cu(5): error: no", 1)]
    assert sorted(failed) == sorted(expected)
    assert errors[0] == "track_counted.A(y) FAILED\na.cu(5): error: no"
    assert "selected" not in lines[record.RUNS_FILE][0]
    assert lines[record.LINES_FILE] == [{"key": "k"}]
    why = "although its machine code and conditions are the same"
    assert warnings == [
        f"no stored number is reused: time_a.A(x) is 1.2500 times the stored number, {why}",
        f"no stored number is reused: time_a.A(y) cannot be measured, {why}",
    ]
    assert [results[name]["duration"] for name in (TIME, RATIO, COUNT)] == [1.5, 1.5, 2.0], "a class shares its seconds"


def test_missing_number_fails_the_benchmark(tmp_path: Path) -> None:
    messages = [_configuration("track_counted.A", place, numbers={COUNT: 1.0} if place else {}) for place in range(3)]
    results, _ = measure_commit(FakeProcess(*messages), tmp_path, COUNT)
    assert (results[COUNT]["result"], results[COUNT]["errcode"]) == ([None, 1.0, 1.0], 1)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, None, [1.0, math.nan], [None]])
def test_only_finite_numbers_are_stored(number: Any, tmp_path: Path) -> None:
    """Other values fail their benchmark with a reason; the rest of the class stays."""
    messages = [
        _configuration("time_a.A", place, numbers={TIME: [1.0], RATIO: [2.0] if place else number})
        for place in range(3)
    ]
    results, lines = measure_commit(FakeProcess(*messages), tmp_path, r"A\.(time|track_copy)", record_samples=True)
    assert (results[TIME]["result"], results[RATIO]["result"]) == ([1.0, 1.0, 1.0], [None, 2.0, 2.0])
    assert {failure["reason"] for failure in lines[record.RUNS_FILE][0]["failed"]} == {
        f"{RATIO} yields a number that is not finite; only finite numbers are stored"
    }


#: Options of `asv run` -> rounds, places of timed and counted classes, benchmarks, and whether lines are counted.
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
    """A ratio has the version of its time, which identifies stored numbers."""
    options, rounds, places, benchmarks, has_lines = ASKED[case]
    child = FakeProcess()
    _, lines = measure_commit(child, tmp_path, **options)
    task = child.task
    assert ([*task.rounds.values()], [*task.places.values()], task.benchmarks) == (rounds, places, benchmarks)
    assert task.versions == {group: "3" if group == "time_a.A" else "1" for group in task.places}
    assert task.lines == (str(tmp_path) if has_lines else "")
    assert task.commit == "c" * 40
    selected = {name: [f"'{'xyz'[place]}'" for place in places[0]] for name in benchmarks} if len(places[0]) < 3 else {}
    assert lines[record.RUNS_FILE][0].get("selected", {}) == selected


@pytest.mark.parametrize("appends", [True, False])
def test_appended_samples_stay(appends: bool, tmp_path: Path) -> None:
    results, _ = measure_commit(FakeProcess(*SAID), tmp_path, append_samples=appends)
    assert (results[TIME].get("samples") is not None) == appends


@pytest.mark.parametrize("change", [{"params": [["'x'"]]}, {"version": "4"}])
def test_benchmarks_that_change_during_a_run(change: dict[str, Any], tmp_path: Path) -> None:
    """Numbers of other axes or versions than the run's are not stored."""
    results, lines = measure_commit(
        FakeProcess(*SAID, suite=[{**benchmark, **change} for benchmark in SUITE]), tmp_path
    )
    assert {str(row["result"]) for row in results.values()} == {"None"}
    assert {failure["reason"] for failure in lines[record.RUNS_FILE][0]["failed"]} == {
        f"{TIME} was changed since the run began; run again"
    }


class Repo:
    """A repository with one branch."""

    def get_hash_from_name(self, name: str) -> str:
        """Return the tip."""
        if name != "main":
            raise NoSuchNameError(name)
        return "tip"

    def pull(self) -> None:
        """Do nothing."""


def _run(options: dict[str, Any] | None = None, branches: tuple[str, ...] = ("main", "gone")) -> run.SuiteRun:
    conf: Any = SimpleNamespace(branches=branches, launch_method="spawn")
    asv_machine: Any = SimpleNamespace(machine="m")
    return run.SuiteRun(conf, Repo(), asv_machine, options or {}, Path(), Path(), {})


#: Unimportable commits -> commit of the benchmarks, and commits with a process.
BROKEN = {"": ("c", "c"), "c": ("tip", "c tip"), "c tip": ("b", "c tip b")}


@pytest.mark.parametrize("broken", [*BROKEN, "c tip b"])
def test_discovery(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first importable commit, or a branch's tip, is discovered; its process measures it."""
    begun: list[str] = []

    @contextmanager
    def begin(*arguments: Any) -> Any:
        begun.append(arguments[3])
        if arguments[3] in broken.split():
            raise PackageError(f"no {arguments[3]}")
        yield FakeProcess()

    monkeypatch.setattr(commit_process, "start_process", begin)
    suite_run, environment = _run(), SimpleNamespace(name="e")
    if broken not in BROKEN:
        with pytest.raises(UserError) as raised:
            suite_run._discover_benchmarks(["c", "b"], environment)
        assert str(raised.value) == "no c (at c)\nno tip (at tip)\nno b (at b)"
        return
    commit, expected = BROKEN[broken]
    discovery = suite_run._discover_benchmarks(["c", "b"], environment)
    assert " ".join(begun) == expected
    for is_first in (True, False):
        with suite_run._enter_process(environment, commit) as child:
            assert (child.discovery is discovery) is is_first


@pytest.mark.parametrize(("name", "commit"), [("other", "c"), ("e", "b")])
def test_discovery_process_is_reused(name: str, commit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its own environment and commit reuse the process."""
    monkeypatch.setattr(commit_process, "start_process", lambda *_: nullcontext("another"))
    suite_run = _run()
    suite_run.discovered = ("e", "c", FakeProcess())  # type: ignore[assignment]
    with suite_run._enter_process(SimpleNamespace(name=name), commit) as child:
        assert child == "another"  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("fails", [False, True])
def test_plain_benchmarks(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asv runs benchmarks without kernels; a failed installation fails the run."""

    def install(*_: Any) -> None:
        if fails:
            raise ProcessError(["pip"], 1, "", "")

    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(log, "error", lambda _: None)
    monkeypatch.setattr(run, "run_benchmarks", lambda *_, **options: calls.append(options))
    suite_run = _run({"quick": True, "show_stderr": True, "attribute": {"a": 1}})
    environment = SimpleNamespace(create=lambda: None, install_project=install)
    suite_run._run_plain(Results({"machine": "m"}, {}, "c" * 40, 0, "3", "e", {}), environment, {})
    assert suite_run.has_failed is fails
    expected = {"quick": True, "show_stderr": True, "record_samples": False, "append_samples": False}
    asv_options = {"extra_params": {"a": 1}, "launch_method": "spawn"}
    assert [{name: options[name] for name in options if name != "results"} for options in calls] == [
        expected | asv_options
    ] * (not fails)


@pytest.mark.parametrize(("machine_name", "facts"), [("mine", {"ram": "much"}), ("", {}), ("other", {})])
def test_choice_of_machine(machine_name: str, facts: dict[str, str], tmp_path: Path) -> None:
    """The named machine, or one named after its GPU; facts that asv stored take precedence."""
    file = tmp_path / "machine.json"
    file.write_text(json.dumps({"version": 1, "mine": {"machine": "mine", "ram": "much"}}))
    loaded = vars(run.load_machine({"machine": machine_name or None, "_machine_file": str(file)}, None))
    name = machine_name or machine.default_name(None)
    assert (loaded["machine"], loaded["ram"]) == (name, facts.get("ram", machine.stable_facts(name, None)["ram"]))


#: GPU, options of asv, number of commits -> whether they are measured in turns.
IN_TURNS = [(True, {"interleave_rounds": None}, 2, True), (True, {"interleave_rounds": True}, 3, True)]
IN_TURNS += [(True, {}, 2, False), (True, {"interleave_rounds": True}, 1, False)]
IN_TURNS += [(False, {"interleave_rounds": True}, 2, False), (True, {"interleave_rounds": False}, 2, False)]


@pytest.mark.parametrize(("has_gpu", "options", "count", "in_turns"), IN_TURNS)
def test_commits_in_turns(
    has_gpu: bool, options: dict[str, Any], count: int, in_turns: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several commits on a GPU take turns; without a GPU CUDA sees none."""
    described: list[tuple[str, int]] = []
    device = machine.Gpu("GPU X", "sm_90", None) if has_gpu else None

    def describe(commit: str, place: int) -> None:
        if commit == "c2":
            raise PackageError("it has no package")
        described.append((commit, place))

    @contextmanager
    def begin(*arguments: Any) -> Any:
        yield SimpleNamespace(write_jobs=lambda place: describe(arguments[3], place))

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setattr(compiler, "choose_compiler", lambda _: None)
    monkeypatch.setattr(machine, "find_gpu", lambda: device)
    monkeypatch.setattr("asv.environment.get_environments", lambda *_: ["py3"])
    monkeypatch.setattr(run, "get_repo", lambda _: Repo())
    monkeypatch.setattr(revision_range, "select_commits", lambda *_: [f"c{place}" for place in range(count)])
    monkeypatch.setattr(folders, "exclusive_lock", lambda _: nullcontext())
    monkeypatch.setattr(run, "_start_measuring", lambda _: nullcontext({}))
    monkeypatch.setattr(commit_process, "start_process", begin)
    monkeypatch.setattr(run.SuiteRun, "measure", lambda suite_run, *_: suite_run.options["interleave_rounds"])
    conf = SimpleNamespace(results_dir=str(tmp_path), dvcs="git")
    with (
        pytest.raises(UserError, match="c2 cannot be measured in turns: it has no package")
        if count > 2
        else nullcontext()
    ):
        assert run.run_suite(conf, options) == in_turns
    assert described == [(f"c{place}", place) for place in range(min(count, 2))] * in_turns
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ("3" if has_gpu else "")


@pytest.mark.parametrize(
    ("requirements", "is_missing", "can_be_built", "python"),
    [
        ({}, False, True, [sys.executable]),
        ({"pip+asv_runner": "0.3.2"}, False, True, [sys.executable]),
        ({"numpy": ""}, False, True, ["theirs"]),
        ({}, True, True, [sys.executable, "theirs", "theirs"]),
        ({}, True, False, [sys.executable, sys.executable]),
    ],
)
def test_choice_of_python(
    requirements: dict[str, str], is_missing: bool, can_be_built: bool, python: list[str],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The run's own Python serves, unless the environment has requirements or a build."""
    begun: list[tuple[str, dict[str, str]]] = []

    @contextmanager
    def begin(python: str, _: Path, variables: dict[str, str], *__: Any) -> Any:
        begun.append((python, variables))
        if is_missing and python == sys.executable:
            raise commit_process._MissingError("no module _built")
        yield FakeProcess()

    if can_be_built:
        (tmp_path / "setup.py").touch()
    monkeypatch.setattr(commit_process, "_installed_environments", set())
    monkeypatch.setattr(commit_process, "ROOT", tmp_path)
    monkeypatch.setattr(commit_process, "_open_process", begin)
    monkeypatch.setattr("kernelwatch.store.commit_checkout.unpack_commit", lambda *_: nullcontext(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "mine")
    environment = SimpleNamespace(name="e", requirements=requirements, create=lambda: None)
    environment.env_vars = {"CC": "theirs", "KERNELWATCH_ROOT": "theirs"}
    environment.install_project, environment.find_executable = lambda *_: None, lambda _: "theirs"
    for _ in range(1 + is_missing):
        is_refused = is_missing and not can_be_built
        with (
            pytest.raises(PackageError) if is_refused else nullcontext(),
            commit_process.start_process(CONF, environment, None, "c", tmp_path),
        ):
            pass
    assert [executable for executable, _ in begun] == python
    for executable, variables in begun:
        assert (variables["CC"], variables["KERNELWATCH_ROOT"]) == ("theirs", "theirs"), "what asv's matrix sets"
        assert ("PYTHONPATH" in variables) == (executable == sys.executable)


def test_killed_counting_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure is reported after the times are measured."""
    monkeypatch.setattr(measure_times, "send_all", lambda task, send, address, begin: begin())
    monkeypatch.setattr(measure_counts, "send_all", lambda task, send: os.kill(os.getpid(), 9))
    with pytest.raises(RuntimeError, match="the process that counts and compiles ended with -9"):
        commit_worker._perform_task(Task(turn=0), None)  # type: ignore[arg-type]


#: Action of a process -> error at its start, or else at its end.
ENDS: dict[str, tuple[str, str, str]] = {
    "it refuses": ("tell(Refusal('no suite', False))", "no suite", ""),
    "it breaks off": ("print('a\\nb', file=sys.stderr); sys.exit(3)", "a\nb", ""),
    "it breaks off in silence": ("sys.exit(3)", "the commit's process ended without a message", ""),
    "all is well": ("begin()", "", ""),
    "it fails later": ("begin(); print('a\\nb', file=sys.stderr); sys.exit(3)", "", "ended with 3: b"),
    "it is killed": ("begin(); os.kill(os.getpid(), 9)", "", "ended with -9: "),
}

#: Prologue of each action.
BEGINS = """import os, sys
from kernelwatch.runner.protocol import Discovery, Refusal, Sender
tell = Sender(1)
def begin():
    tell(Discovery([], {}))
    assert '"turn":5' in sys.stdin.readline()
"""


@pytest.mark.parametrize(("does", "error", "ending"), ENDS.values(), ids=ENDS)
def test_failing_processes(does: str, error: str, ending: str, tmp_path: Path) -> None:
    """The error has the last line of the process's output."""
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-c", BEGINS + does], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        ) as begun,
        pytest.raises(PackageError, match=f"^{error}$") if error else nullcontext(),
    ):
        child = commit_process.CommitProcess(begun, tmp_path / "log")
        with pytest.raises(PackageError, match=f"^the commit's process {ending}$") if ending else nullcontext():
            child.write_jobs(5)
        assert child.problem == (ending and f"the commit's process {ending}")
