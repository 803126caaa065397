"""What is asked of a commit's process, and what becomes of what it says; and whose process that is."""

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
from kernelwatch.runner.commit_run import Commit
from kernelwatch.runner.protocol import Configuration, Difference, Discovery, Line, Step, Task
from kernelwatch.runner.record import RunRecord
from kernelwatch.store import folders, record

TIME, RATIO = "time_a.A.time_back_to_back", "track_control.A.track_copy_ratio"
COUNT, REGISTERS = "track_counted.A.track_sectors", "track_compiled.C.track_registers"
GROUPS = {"time_a.A": [TIME, RATIO], "track_counted.A": [COUNT], "track_compiled.C": [REGISTERS]}
CONF = SimpleNamespace(benchmark_dir="", branches=["main"], launch_method=None)


def _benchmark(name: str) -> dict[str, Any]:
    known = {"name": name, "params": [["'x'", "'y'", "'z'"]], "param_names": ["k"], "version": "1", "code": ""}
    return known | ({"rounds": 2, "version": "3"} if name == TIME else {})


SUITE = [_benchmark(name) for names in GROUPS.values() for name in names]


class Child:
    """Stands for the process of a commit: says what it was given, and keeps what it is asked."""

    def __init__(self, *said: Any, suite: list[dict[str, Any]] = SUITE, problem: str = "") -> None:
        self.said, self.discovery, self.problem = said, Discovery(suite, GROUPS), problem

    def ask(self, task: Task) -> None:
        """Keep it."""
        self.task = task

    def messages(self) -> Any:
        """What was given."""
        return iter(self.said)


def measured(child: Child, folder: Path, regex: str = "", is_head: bool = False, **options: Any) -> tuple[Any, Any]:
    """What asv's results hold, by benchmark, and the record's lines."""
    results = Results({"machine": "m"}, {}, "c" * 40, 0, "3", "py3", {})
    benchmarks = Benchmarks(CONF, SUITE, regex=regex or None)
    kept = RunRecord("c" * 40)
    Commit(results, benchmarks, GROUPS, options, folder, kept, is_head).measure(nullcontext(child))  # type: ignore[arg-type]
    results.save(str(folder))
    (path,) = folder.glob("m/*.json")
    found = json.loads(path.read_bytes())
    return {
        name: {**dict(zip(found["result_columns"], row, strict=False)), "errcode": results.errcode[name]}
        for name, row in found["results"].items()
    }, kept.lines()


def _one(group: str, place: int, **told: Any) -> Configuration:
    return Configuration(group=group, place=place, params="xyz"[place], **told)


SAMPLES = [1.23456789012, 3.0]
SAID = (
    Difference("time_a.A(x)", 1.25),
    Difference("time_a.A(y)", None),
    Step("time_a.A", 0),
    _one("time_a.A", 0, numbers={TIME: SAMPLES, RATIO: [2.5, 2.5]}, rounds=[1, 1]),
    _one("time_a.A", 1, skipped="no kernel"),
    _one("track_counted.A", 0, numbers={COUNT: 4.0}),
    _one("track_counted.A", 1, failed="a.cu(5): error: no"),
    Line({"key": "k"}),
)


def test_what_becomes_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers with so many digits, skips as NaN, failures as null, and a failure of what nothing was heard of."""
    told, warned = list[str](), list[str]()
    monkeypatch.setattr(log, "error", told.append)
    monkeypatch.setattr(log, "warning", warned.append)
    monkeypatch.setattr(commit_run, "time", SimpleNamespace(monotonic=itertools.count().__next__))
    results, lines = measured(Child(*SAID, problem="it ended with -9"), tmp_path, record_samples=True)
    assert results[TIME]["samples"] == [[1.2345679, 3.0], None, None]
    assert [math.isnan(results[name]["result"][1]) for name in (TIME, RATIO)] == [True, True]
    assert (results[COUNT]["result"], results[REGISTERS]["result"]) == ([4.0, None, None], None)
    failed = [
        (each["benchmark"], each["reason"], each["configurations"]) for each in lines[record.RUNS_FILE][0]["failed"]
    ]
    ended = [(TIME, 1), (REGISTERS, 3), (RATIO, 1), (COUNT, 1)]
    expected = [*((name, "it ended with -9", count) for name, count in ended), (COUNT, "a.cu(5): error: no", 1)]
    assert sorted(failed) == sorted(expected)
    assert told[0] == "track_counted.A(y) FAILED\na.cu(5): error: no"
    assert "selected" not in lines[record.RUNS_FILE][0]
    assert lines[record.LINES_FILE] == [{"key": "k"}]
    same = "whose machine code and conditions are the same"
    assert warned == [
        f"everything is measured: time_a.A(x), {same}, is 1.2500 times the stored number",
        f"everything is measured: time_a.A(y), {same}, could not be measured",
    ]
    assert [results[name]["duration"] for name in (TIME, RATIO, COUNT)] == [1.5, 1.5, 2.0], "a class shares its seconds"


def test_a_number_that_is_missing(tmp_path: Path) -> None:
    """A configuration that was counted, and has no such number: the benchmark has failed."""
    said = [_one("track_counted.A", place, numbers={COUNT: 1.0} if place else {}) for place in range(3)]
    results, _ = measured(Child(*said), tmp_path, COUNT)
    assert (results[COUNT]["result"], results[COUNT]["errcode"]) == ([None, 1.0, 1.0], 1)


#: What `asv run` was asked -> rounds, places of what is timed and counted, benchmarks, and whether lines are counted.
ASKED: dict[str, tuple[dict[str, Any], list[int], list[Any], list[str], bool]] = {
    "all": ({}, [2, 1, 1], [[0, 1, 2]] * 3, [TIME, RATIO, COUNT, REGISTERS], False),
    "HEAD": ({"is_head": True}, [2, 1, 1], [[0, 1, 2]] * 3, [TIME, RATIO, COUNT, REGISTERS], True),
    "compiled": ({"is_head": True, "regex": REGISTERS}, [1], [[0, 1, 2]], [REGISTERS], False),
    "quickly": ({"quick": True}, [1, 1, 1], [[0, 1, 2]] * 3, [TIME, RATIO, COUNT, REGISTERS], False),
    "rounds": ({"attribute": {"rounds": "3"}}, [3, 3, 3], [[0, 1, 2]] * 3, [TIME, RATIO, COUNT, REGISTERS], False),
    "a part": ({"regex": r"(A\.time_|sectors).*(x|z)"}, [2, 1], [[0, 2]] * 2, [TIME, COUNT], False),
    "a ratio": ({"regex": r"ratio.*y"}, [1], [[1]], [RATIO], False),
}


@pytest.mark.parametrize("what", ASKED)
def test_what_is_asked(what: str, tmp_path: Path) -> None:
    """As a person asks asv for it; of a ratio, the version is the time's, which stored numbers are found by."""
    options, rounds, places, benchmarks, has_lines = ASKED[what]
    child = Child()
    _, lines = measured(child, tmp_path, **options)
    task = child.task
    assert ([*task.rounds.values()], [*task.places.values()], task.benchmarks) == (rounds, places, benchmarks)
    assert task.versions == {group: "3" if group == "time_a.A" else "1" for group in task.places}
    assert task.lines == (str(tmp_path) if has_lines else "")
    assert task.commit == "c" * 40
    some = {name: [f"'{'xyz'[place]}'" for place in places[0]] for name in benchmarks} if len(places[0]) < 3 else {}
    assert lines[record.RUNS_FILE][0].get("selected", {}) == some


@pytest.mark.parametrize("appends", [True, False])
def test_samples_are_appended(appends: bool, tmp_path: Path) -> None:
    """To append is to keep them."""
    results, _ = measured(Child(*SAID), tmp_path, append_samples=appends)
    assert (results[TIME].get("samples") is not None) == appends


@pytest.mark.parametrize("change", [{"params": [["'x'"]]}, {"version": "4"}])
def test_benchmarks_that_change_meanwhile(change: dict[str, Any], tmp_path: Path) -> None:
    """What is measured under other axes than the run began with is no number of the commit."""
    results, lines = measured(Child(*SAID, suite=[{**each, **change} for each in SUITE]), tmp_path)
    assert {str(row["result"]) for row in results.values()} == {"None"}
    assert {each["reason"] for each in lines[record.RUNS_FILE][0]["failed"]} == {
        f"{TIME} was changed since the run began; run again"
    }


class Repo:
    """Knows one branch."""

    def get_hash_from_name(self, name: str) -> str:
        """Its tip."""
        if name != "main":
            raise NoSuchNameError(name)
        return "tip"

    def pull(self) -> None:
        """Do nothing."""


def _run(options: dict[str, Any] | None = None, branches: tuple[str, ...] = ("main", "gone")) -> run.Run:
    conf: Any = SimpleNamespace(branches=branches, launch_method="spawn")
    machine: Any = SimpleNamespace(machine="m")
    return run.Run(conf, Repo(), machine, options or {}, Path(), Path(), {})


#: Commits whose package cannot be imported -> the one whose benchmarks count, and all whose processes began.
BROKEN = {"": ("c", "c"), "c": ("tip", "c tip"), "c tip": ("b", "c tip b")}


@pytest.mark.parametrize("broken", [*BROKEN, "c tip b"])
def test_discovery(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first commit that can be imported, or a branch's tip; its process measures it, and no other does."""
    begun: list[str] = []

    @contextmanager
    def begin(*known: Any) -> Any:
        begun.append(known[3])
        if known[3] in broken.split():
            raise PackageError(f"no {known[3]}")
        yield Child()

    monkeypatch.setattr(commit_process, "begun", begin)
    one, environment = _run(), SimpleNamespace(name="e")
    if broken not in BROKEN:
        with pytest.raises(UserError) as raised:
            one._discover(["c", "b"], environment)
        assert str(raised.value) == "no c (at c)\nno tip (at tip)\nno b (at b)"
        return
    commit, expected = BROKEN[broken]
    discovery = one._discover(["c", "b"], environment)
    assert " ".join(begun) == expected
    for is_first in (True, False):
        with one._child(environment, commit) as child:
            assert (child.discovery is discovery) is is_first


@pytest.mark.parametrize(("name", "commit"), [("other", "c"), ("e", "b")])
def test_another_process(name: str, commit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that discovered benchmarks is of one environment and one commit."""
    monkeypatch.setattr(commit_process, "begun", lambda *_: nullcontext("another"))
    one = _run()
    one.begun = ("e", "c", Child())  # type: ignore[assignment]
    with one._child(SimpleNamespace(name=name), commit) as child:
        assert child == "another"  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("fails", [False, True])
def test_plain(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks that are no kernel's are asv's to run, as it was asked; one that cannot be installed is a failure."""

    def install(*_: Any) -> None:
        if fails:
            raise ProcessError(["pip"], 1, "", "")

    called: list[dict[str, Any]] = []
    monkeypatch.setattr(log, "error", lambda _: None)
    monkeypatch.setattr(run, "run_benchmarks", lambda *_, **how: called.append(how))
    one = _run({"quick": True, "show_stderr": True, "attribute": {"a": 1}})
    environment = SimpleNamespace(create=lambda: None, install_project=install)
    one._plain(Results({"machine": "m"}, {}, "c" * 40, 0, "3", "e", {}), environment, {})
    assert one.has_failed is fails
    expected = {"quick": True, "show_stderr": True, "record_samples": False, "append_samples": False}
    of_asv = {"extra_params": {"a": 1}, "launch_method": "spawn"}
    assert [{name: how[name] for name in how if name != "results"} for how in called] == [expected | of_asv] * (
        not fails
    )


@pytest.mark.parametrize(("named", "told"), [("mine", {"ram": "much"}), ("", {}), ("other", {})])
def test_machine(named: str, told: dict[str, str], tmp_path: Path) -> None:
    """The one that is named, or else called after its GPU; what asv has been told of it counts."""
    file = tmp_path / "machine.json"
    file.write_text(json.dumps({"version": 1, "mine": {"machine": "mine", "ram": "much"}}))
    found = vars(run.machine_of({"machine": named or None, "_machine_file": str(file)}, None))
    name = named or machine.default_name(None)
    assert (found["machine"], found["ram"]) == (name, told.get("ram", machine.stable(name, None)["ram"]))


#: Whether there is a GPU, what asv was asked, and how many commits -> whether they are measured in turns.
IN_TURNS = [(True, {"interleave_rounds": None}, 2, True), (True, {"interleave_rounds": True}, 3, True)]
IN_TURNS += [(True, {}, 2, False), (True, {"interleave_rounds": True}, 1, False)]
IN_TURNS += [(False, {"interleave_rounds": True}, 2, False), (True, {"interleave_rounds": False}, 2, False)]


@pytest.mark.parametrize(("has_gpu", "options", "count", "in_turns"), IN_TURNS)
def test_commits_in_turns(
    has_gpu: bool, options: dict[str, Any], count: int, in_turns: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only on a GPU, and only if there are several; without one, CUDA sees none."""
    described: list[tuple[str, int]] = []
    device = machine.Gpu("GPU X", "sm_90", None) if has_gpu else None

    def describe(commit: str, place: int) -> None:
        if commit == "c2":
            raise PackageError("it has no package")
        described.append((commit, place))

    @contextmanager
    def begin(*known: Any) -> Any:
        yield SimpleNamespace(describe=lambda place: describe(known[3], place))

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setattr(compiler, "choose", lambda _: None)
    monkeypatch.setattr(machine, "gpu", lambda: device)
    monkeypatch.setattr("asv.environment.get_environments", lambda *_: ["py3"])
    monkeypatch.setattr(run, "get_repo", lambda _: Repo())
    monkeypatch.setattr(revision_range, "selected", lambda *_: [f"c{place}" for place in range(count)])
    monkeypatch.setattr(folders, "exclusive_lock", lambda _: nullcontext())
    monkeypatch.setattr(run, "_measuring", lambda _: nullcontext({}))
    monkeypatch.setattr(commit_process, "begun", begin)
    monkeypatch.setattr(run.Run, "measure", lambda one, *_: one.options["interleave_rounds"])
    conf = SimpleNamespace(results_dir=str(tmp_path), dvcs="git")
    with (
        pytest.raises(UserError, match="c2 cannot be measured in turns: it has no package")
        if count > 2
        else nullcontext()
    ):
        assert run.run(conf, options) == in_turns
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
def test_which_python(
    requirements: dict[str, str], is_missing: bool, can_be_built: bool, python: list[str],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The run's own, unless the environment has requirements or the package must be built, which is found out once."""
    begun: list[tuple[str, dict[str, str]]] = []

    @contextmanager
    def begin(python: str, _: Path, variables: dict[str, str], *__: Any) -> Any:
        begun.append((python, variables))
        if is_missing and python == sys.executable:
            raise commit_process._MissingError("no module _built")
        yield Child()

    if can_be_built:
        (tmp_path / "setup.py").touch()
    monkeypatch.setattr(commit_process, "_needed", set())
    monkeypatch.setattr(commit_process, "ROOT", tmp_path)
    monkeypatch.setattr(commit_process, "_process", begin)
    monkeypatch.setattr("kernelwatch.store.commit_checkout.unpack_commit", lambda *_: nullcontext(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "mine")
    environment = SimpleNamespace(name="e", requirements=requirements, create=lambda: None)
    environment.env_vars = {"CC": "theirs", "KERNELWATCH_ROOT": "theirs"}
    environment.install_project, environment.find_executable = lambda *_: None, lambda _: "theirs"
    for _ in range(1 + is_missing):
        is_refused = is_missing and not can_be_built
        with (
            pytest.raises(PackageError) if is_refused else nullcontext(),
            commit_process.begun(CONF, environment, None, "c", tmp_path),
        ):
            pass
    assert [one for one, _ in begun] == python
    for one, variables in begun:
        assert (variables["CC"], variables["KERNELWATCH_ROOT"]) == ("theirs", "theirs"), "what asv's matrix sets"
        assert ("PYTHONPATH" in variables) == (one == sys.executable)


def test_what_counts_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for want of memory: the commit's process says so, behind what it has measured."""
    monkeypatch.setattr(measure_times, "send_all", lambda task, send, address, begin: begin())
    monkeypatch.setattr(measure_counts, "send_all", lambda task, send: os.kill(os.getpid(), 9))
    with pytest.raises(RuntimeError, match="what counts and compiles ended with -9"):
        commit_worker._work(Task(turn=0), None)  # type: ignore[arg-type]


#: What the process of a commit does -> the error as it begins, or else what is said of its end.
ENDS: dict[str, tuple[str, str, str]] = {
    "it refuses": ("tell(Refusal('no suite', False))", "no suite", ""),
    "it breaks off": ("print('a\\nb', file=sys.stderr); sys.exit(3)", "a\nb", ""),
    "it breaks off in silence": ("sys.exit(3)", "its process broke off", ""),
    "all is well": ("begin()", "", ""),
    "it fails later": ("begin(); print('a\\nb', file=sys.stderr); sys.exit(3)", "", "ended with 3: b"),
    "it is killed": ("begin(); os.kill(os.getpid(), 9)", "", "ended with -9: "),
}

#: What each of them begins with.
BEGINS = """import os, sys
from kernelwatch.runner.protocol import Discovery, Refusal, Sender
tell = Sender(1)
def begin():
    tell(Discovery([], {}))
    assert '"turn":5' in sys.stdin.readline()
"""


@pytest.mark.parametrize(("does", "error", "said"), ENDS.values(), ids=ENDS)
def test_ends(does: str, error: str, said: str, tmp_path: Path) -> None:
    """Why a commit's process could not begin, and why it ended before it was done, by what it printed last."""
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-c", BEGINS + does], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        ) as begun,
        pytest.raises(PackageError, match=f"^{error}$") if error else nullcontext(),
    ):
        child = commit_process.CommitProcess(begun, tmp_path / "log")
        with pytest.raises(PackageError, match=f"^the commit's process {said}$") if said else nullcontext():
            child.describe(5)
        assert child.problem == (said and f"the commit's process {said}")
