"""A run of commits: discovery, machine, interleaving, Python, and processes that fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv.console import log
from asv.repo import NoSuchNameError
from asv.results import Results
from asv.util import ProcessError, UserError

from kernelwatch.instrument import machine
from kernelwatch.runner import commit_process, commit_worker, compiler, revision_range, run_machine, whole_run
from kernelwatch.runner.commit_process import PackageError
from kernelwatch.runner.protocol import Task
from kernelwatch.store import folders
from tests.kernelwatch.runner.test_commit import CONF, FakeProcess


def _find_tip(name: str) -> str:
    if name != "main":
        raise NoSuchNameError(name)
    return "tip"


#: A fake repository of asv with the branch `main`. All commits have one date.
REPO: Any = SimpleNamespace(
    get_hash_from_name=_find_tip,
    pull=lambda: None,
    get_date=lambda _: 0,
    get_decorated_hash=lambda commit, length: commit[:length],
)


def _run(options: dict[str, Any] | None = None, branches: tuple[str, ...] = ("main", "gone")) -> whole_run.SuiteRun:
    conf: Any = SimpleNamespace(branches=branches, launch_method="spawn", project="p", results_dir="no such folder")
    asv_machine: Any = SimpleNamespace(machine="m")
    return whole_run.SuiteRun(conf, REPO, asv_machine, options or {}, Path(), Path(), {})


#: Commits that cannot be imported -> commit that lists the benchmarks, and commits that got a process.
BROKEN = {"": ("c", "c"), "c": ("tip", "c tip"), "c tip": ("b", "c tip b")}


@pytest.mark.parametrize("broken", [*BROKEN, "c tip b"])
def test_first_importable_commit_lists_benchmarks(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is first commit, branch's tip, other commits. Discovery's process is then used once for its commit."""
    begun: list[str] = []

    @contextmanager
    def begin(_conf: Any, _environment: Any, _repo: Any, commit: str, *_: Any) -> Any:
        begun.append(commit)
        if commit in broken.split():
            raise PackageError(f"no {commit}")
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
def test_discovery_process_is_for_its_commit(name: str, commit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another environment or commit gets another process."""
    monkeypatch.setattr(commit_process, "start_process", lambda *_: nullcontext("another"))
    suite_run = _run()
    suite_run.discovered = ("e", "c", FakeProcess())  # type: ignore[assignment]
    with suite_run._enter_process(SimpleNamespace(name=name), commit) as child:
        assert child == "another"  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("fails", [False, True])
def test_asv_runs_benchmarks_without_kernels(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asv gets the run's options. A failed installation fails the run."""

    def install(*_: Any) -> None:
        if fails:
            raise ProcessError(["pip"], 1, "", "")

    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(log, "error", lambda _: None)
    monkeypatch.setattr(whole_run, "run_benchmarks", lambda *_, **options: calls.append(options))
    suite_run = _run({"quick": True, "show_stderr": True, "attribute": {"a": 1}})
    environment = SimpleNamespace(create=lambda: None, install_project=install)
    suite_run._run_with_asv(Results({"machine": "m"}, {}, "c" * 40, 0, "3", "e", {}), environment, {})
    assert suite_run.has_failed is fails
    expected = {"quick": True, "show_stderr": True, "record_samples": False, "append_samples": False}
    asv_options = {"extra_params": {"a": 1}, "launch_method": "spawn"}
    run_options = [{name: options[name] for name in options if name != "results"} for options in calls]
    assert run_options == [expected | asv_options] * (not fails)


class _Benchmarks(dict[str, Any]):
    def filter_out(self, names: set[str]) -> _Benchmarks:
        return _Benchmarks({name: benchmark for name, benchmark in self.items() if name not in names})


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_interrupted_controls_keep_the_results(
    error: type[BaseException] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit's results are saved once, also if the user ends the run while its base is measured."""

    def measure_controls(*_: Any) -> dict[str, Any]:
        if error:
            raise error
        return {}

    saved: list[str] = []
    monkeypatch.setattr(whole_run, "CommitMeasurement", lambda *_: SimpleNamespace(measure=lambda _: None))
    monkeypatch.setattr(whole_run.SuiteRun, "_measure_controls", measure_controls)
    monkeypatch.setattr(whole_run.SuiteRun, "_save", lambda _, results, *rest: saved.append(results.commit_hash))
    suite_run, environment = _run(), SimpleNamespace(name="e", requirements={}, python="3", env_vars={})
    commit, name = "c" * 40, "time_copy.Copy.time"
    with pytest.raises(error) if error else nullcontext():
        suite_run._measure_commit(commit, environment, _Benchmarks({name: {}}), {"time_copy.Copy": [name]})
    assert saved == [commit]


@pytest.mark.parametrize(("machine_name", "facts"), [("mine", {"ram": "much"}), ("", {}), ("other", {})])
def test_machine_is_named_or_default(machine_name: str, facts: dict[str, str], tmp_path: Path) -> None:
    """Facts that asv stored of the machine take precedence."""
    file = tmp_path / "machine.json"
    file.write_text(json.dumps({"version": 1, "mine": {"machine": "mine", "ram": "much"}}))
    loaded = vars(run_machine.load_machine({"machine": machine_name or None, "_machine_file": str(file)}, None))
    name = machine_name or machine.default_name(None)
    assert (loaded["machine"], loaded["ram"]) == (name, facts.get("ram", machine.stable_facts(name, None)["ram"]))


@pytest.mark.parametrize(
    ("has_gpu", "options", "count", "in_turns"),
    [
        (True, {"interleave_rounds": None}, 2, True),  # the default of `asv continuous`
        (True, {"interleave_rounds": True}, 3, True),  # c2 has no package: an error
        (True, {}, 2, False),
        (True, {"interleave_rounds": True}, 1, False),
        (False, {"interleave_rounds": True}, 2, False),
        (True, {"interleave_rounds": False}, 2, False),
    ],
)
def test_commits_on_a_gpu_are_interleaved(
    has_gpu: bool, options: dict[str, Any], count: int, in_turns: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options may forbid it. Of three commits, the last, c2, has no package. Without a GPU, CUDA sees no devices."""
    described: list[tuple[str, int]] = []
    device = machine.Gpu("GPU X", "sm_90", None) if has_gpu else None

    def describe(commit: str, index: int) -> None:
        if commit == "c2":
            raise PackageError("it has no package")
        described.append((commit, index))

    @contextmanager
    def begin(_conf: Any, _environment: Any, _repo: Any, commit: str, *_: Any) -> Any:
        yield SimpleNamespace(write_jobs=lambda index: describe(commit, index))

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setattr(compiler, "choose_compiler", lambda _: None)
    monkeypatch.setattr(machine, "find_gpu", lambda: device)
    monkeypatch.setattr("asv.environment.get_environments", lambda *_: [SimpleNamespace(python="3")])
    monkeypatch.setattr(whole_run, "get_repo", lambda _: REPO)
    monkeypatch.setattr(revision_range, "select_commits", lambda *_: [f"c{index}" for index in range(count)])
    monkeypatch.setattr(folders, "exclusive_lock", lambda _: nullcontext())
    monkeypatch.setattr(whole_run, "_start_measuring", lambda _: nullcontext({}))
    monkeypatch.setattr(commit_process, "start_process", begin)
    monkeypatch.setattr(whole_run.SuiteRun, "measure", lambda suite_run, *_: suite_run.options["interleave_rounds"])
    conf = SimpleNamespace(results_dir=str(tmp_path), benchmark_dir=str(tmp_path), dvcs="git")
    error = "c2 cannot be measured in an interleaved run: it has no package"
    with pytest.raises(UserError, match=error) if count > 2 else nullcontext():
        assert whole_run.run_suite(conf, options) == in_turns
    assert described == [(f"c{index}", index) for index in range(min(count, 2))] * in_turns
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ("3" if has_gpu else "")


@pytest.mark.parametrize(
    ("python", "is_own"), [("3", True), ("3.11", True), ("3.1", False), ("3.9", False), ("2", False)]
)
def test_another_python_is_refused(python: str, is_own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment with another Python than asv's is refused, because the running one imports the package."""
    monkeypatch.setattr("platform.python_version", lambda: "3.11.7")
    environment = SimpleNamespace(python=python)
    monkeypatch.setattr("asv.environment.get_environments", lambda *_: [environment])
    error = rf"^kernelwatch measures only in the Python that runs asv, 3\.11\.7; run asv in Python {python}, or "
    with nullcontext() if is_own else pytest.raises(UserError, match=error):
        assert whole_run._select_environments(None, {}) == [environment]


@pytest.mark.parametrize(
    ("requirements", "is_missing", "can_be_built", "python"),
    [
        ({}, False, True, [sys.executable]),
        ({"pip+asv_runner": "0.3.2"}, False, True, [sys.executable]),
        ({"numpy": ""}, False, True, ["theirs"]),
        ({}, True, True, [sys.executable, "theirs", "theirs"]),  # the second process begins in the built environment
        ({}, True, False, [sys.executable, sys.executable]),  # nothing can be built: both starts fail
    ],
)
def test_python_of_the_run_measures_commits(
    requirements: dict[str, str], is_missing: bool, can_be_built: bool, python: list[str],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The Python of the run measures a commit, unless the environment has requirements or the package needs a build."""
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
    is_refused = is_missing and not can_be_built
    for _ in range(1 + is_missing):
        process = commit_process.start_process(CONF, environment, None, "c", tmp_path)
        with pytest.raises(PackageError) if is_refused else nullcontext(), process:
            pass
    assert [executable for executable, _ in begun] == python
    for executable, variables in begun:
        assert (variables["CC"], variables["KERNELWATCH_ROOT"]) == ("theirs", "theirs"), "asv's matrix is not set"
        assert ("PYTHONPATH" in variables) == (executable == sys.executable)


def test_killed_counting_process_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwatch.runner.measure_times.measure_task", lambda task, send, address, begin: begin())
    killed = "kernelwatch.runner.measure_counts.compile_and_count"
    monkeypatch.setattr(killed, lambda task, send: os.kill(os.getpid(), 9))
    with pytest.raises(RuntimeError, match="that counts and compiles ended with exit code -9; it was killed"):
        commit_worker._perform_task(Task(interleaved_index=0), None)  # type: ignore[arg-type]


#: Case -> action of a process, error at its start, and problem at its end.
ENDS: dict[str, tuple[str, str, str]] = {
    "it refuses": ("tell(ImportFailure('no suite', False))", "no suite", ""),
    "it breaks off": ("print('a\\nb', file=sys.stderr); sys.exit(3)", "a\nb", ""),
    "it breaks off in silence": ("sys.exit(3)", "the commit's process ended without a message", ""),
    "all is well": ("begin()", "", ""),
    "it fails later": ("begin(); print('a\\nb', file=sys.stderr); sys.exit(3)", "", "ended with exit code 3: b"),
    "it is killed": (
        "begin(); os.kill(os.getpid(), 9)",
        "",
        "ended with exit code -9; it was killed, often for lack of memory: use smaller arguments",
    ),
}

BEGINS = """import os, sys
from kernelwatch.runner.protocol import Discovery, ImportFailure, Sender
tell = Sender(1)
def begin():
    tell(Discovery([], {}))
    assert '"interleaved_index":5' in sys.stdin.readline()
"""


@pytest.mark.parametrize(("does", "error", "ending"), ENDS.values(), ids=ENDS)
def test_failing_process_is_explained(does: str, error: str, ending: str, tmp_path: Path) -> None:
    """A failure at the start raises an error with its message or stderr. Later, `wait` returns stderr's last line."""
    words, pipe = [sys.executable, "-c", BEGINS + does], subprocess.PIPE
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=log) as begun,
        pytest.raises(PackageError, match=f"^{error}$") if error else nullcontext(),
    ):
        child = commit_process.CommitProcess(begun, tmp_path / "log")
        with pytest.raises(PackageError, match=f"^the commit's process {ending}$") if ending else nullcontext():
            child.write_jobs(5)
        assert child.wait() == (ending and f"the commit's process {ending}")
