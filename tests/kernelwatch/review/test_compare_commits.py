"""Selection of commits, machine and environment for the review, and its errors."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwatch.cli import regressions
from kernelwatch.cli.compare import compare as main
from kernelwatch.config import settings
from kernelwatch.config.project_root import ROOT
from kernelwatch.store import git
from kernelwatch.store.folders import RESULTS
from kernelwatch.suite import registry
from tests.commits import begin, commit
from tests.stored import BASE, COUNT, HEAD, TIME, Suite, change_document, find_results, pair, review_as_json, write


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nope", HEAD], "'nope' is not a commit of .*; results exist for cccccccc, bbbbbbbb, dddddddd; "),
        (["a..b"], r"'a\.\.b' is a range; give its ends as two arguments: a b$"),
        (["a...b"], r"'a\.\.\.b' is a range; give its ends as two arguments: a b$"),
        (["--", "--help", HEAD], "'--help' is not a commit"),
        (["bbbb", HEAD, "--machine", "x"], "has no results of x, only of gpu; choose one"),
        (["bbbb", "eeee"], "'eeee' is not a commit"),
        (["bbbb", "d" * 40], "no machine measured both 'bbbb' .* in one environment; results exist for gpu"),
        (["", ""], "'' is not a commit"),
    ],
)
def test_wrong_commits_fail(words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, pair(1.0, 1.0, COUNT))
    write(tmp_path, {"d" * 40: {COUNT: {"one": 1.0}}}, environment="python3.09")
    assert main(words, tmp_path) == 2
    written = capsys.readouterr()
    assert written.err.startswith("cannot compare: ")
    assert written.out == ""
    assert re.search(message, written.err)


@pytest.mark.parametrize("variable", ["", "of-a-run"])
@pytest.mark.parametrize("command", [main, regressions.main])
def test_results_folder_is_found(
    command: Callable[..., int], variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """KERNELWATCH_RESULTS names it, or else asv.conf.json. An error names a folder without results."""
    write(tmp_path, pair(1.0, 2.0, COUNT))
    change_document(tmp_path / "asv.conf.json", lambda configuration: configuration.update(results_dir="bench"))
    folder = tmp_path / (variable or "bench")
    monkeypatch.setenv(RESULTS, str(folder) if variable else "")
    words = [BASE, HEAD] if command is main else []
    assert command(words, tmp_path) == 2
    message = f"{folder} has no results; run: asv run --record-samples HEAD^!\n"
    assert capsys.readouterr().err.partition(": ")[2] == message
    (tmp_path / "results").rename(folder)
    assert command(words, tmp_path) == 1


#: Value of head by machine and environment (base has 1), the order of their reviews, and the exit code.
SEVERAL: dict[str, tuple[dict[tuple[str, str], float | None], list[tuple[str, str]], int]] = {
    "machines": ({("a", "py"): 1.0, ("b", "py"): 2.0}, [("b", "SLOWER"), ("a", "SAME")], 1),
    "environments": ({("a", "x"): 2.0, ("a", "y"): 1.0}, [("a, x", "SLOWER"), ("a, y", "SAME")], 1),
    "what fails": ({("a", "x"): 1.0, ("a", "y"): None}, [("a, y", "BROKEN"), ("a, x", "SAME")], 1),
    "all are well": ({("b", "py"): 0.5, ("a", "py"): 1.0}, [("b", "FASTER"), ("a", "SAME")], 0),
}  # fmt: skip


@pytest.mark.parametrize("case", SEVERAL)
def test_each_machine_and_environment_is_judged(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The worst review comes first and decides the exit code."""
    heads, expected, exit_code = SEVERAL[case]
    for (name, environment), head in heads.items():
        write(tmp_path, pair(1.0, head, COUNT), machine=name, environment=environment)
    assert main([BASE, HEAD], tmp_path) == exit_code
    output = capsys.readouterr().out
    untimed = {"SLOWER": "WORSE", "FASTER": "BETTER"}  # words of the text if there are no times
    assert re.findall(r"^([A-Z]+)  bbbbbbbb -> cccccccc, (.*)$", output, re.MULTILINE) == [
        (untimed.get(verdict, verdict), place) for place, verdict in expected
    ]
    code, first = review_as_json(tmp_path, capsys)
    assert (code, first["exit_code"]) == (exit_code, exit_code)
    assert [document["conclusion"] for document in (first, *first["others"])] == [verdict for _, verdict in expected]
    name = expected[-1][0].partition(",")[0]
    code, alone = review_as_json(tmp_path, capsys, BASE, HEAD, "--machine", name)
    assert {document["machine"] for document in (alone, *alone["others"])} == {name}


@pytest.mark.parametrize("names", [["case", "clock"], []])
def test_results_with_other_axes_are_left_out(
    names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """TIME was measured with the axis `case` alone. Now its axes are others."""
    suite: Suite = {commit: {name: {"one": 1.0} for name in (TIME, COUNT)} for commit in (BASE, HEAD)}
    write(tmp_path, suite)
    axes = {"param_names": names, "params": [["'one'"] for _ in names]}
    change_document(tmp_path / "results" / "benchmarks.json", lambda document: document[TIME].update(axes))
    code, review = review_as_json(tmp_path, capsys)
    assert (code, [row["kind"] for row in review["rows"]]) == (0, ["counted"])
    history, results = find_results(tmp_path, HEAD)
    assert history.explain_absence(results, TIME) == "measured with other axes"
    assert (history.list_values(results, TIME), list(history.iter_points(results, TIME))) == ([], [])


@pytest.mark.parametrize(
    ("named", "text", "message"),
    [
        (True, "syntax error(", "cannot compare: .*/own_suite.py:1: SyntaxError: .*\n"),
        (True, "SUTIE = 1", "cannot compare: own_suite has no SUITE; declare a kernel there, or name your suite in "),
        (True, None, "cannot compare: there is no module own_suite; name your suite in "),
        (False, None, ""),
    ],
)
def test_broken_suite_ends_the_review(
    named: bool, text: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The suite that the project names must be there. A project may name none."""
    write(tmp_path, pair(1.0, 1.0, COUNT))
    if text:
        (tmp_path / "own_suite.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_suite", raising=False)
    monkeypatch.setattr(registry, "_registered", [])
    monkeypatch.setattr(settings, "suite_name", lambda: "own_suite:SUITE")
    monkeypatch.setattr(settings, "_load_settings", lambda: settings.Settings(suite="own_suite:SUITE" if named else ""))
    registry._load_suite.cache_clear()
    try:
        assert main([BASE, HEAD], tmp_path) == (2 if named else 0)
    finally:
        registry._load_suite.cache_clear()
    assert re.match(message, capsys.readouterr().err)


@pytest.fixture
def commits(tmp_path: Path) -> list[str]:
    """Return four commits of a repository; all but the last have results."""
    commits = [commit(begin(tmp_path)), commit(tmp_path), commit(tmp_path), commit(tmp_path)]
    write(tmp_path, {commit_hash: {COUNT: {"one": 1.0}} for commit_hash in commits[:3]})
    return commits


def test_commits_are_git_revisions(commits: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git.text(tmp_path, "tag", "v1", commits[0])
    code, document = review_as_json(tmp_path, capsys, "v1", "HEAD~1")
    assert (code, document["base"]["commit"], document["head"]["commit"]) == (0, commits[0], commits[2])


def test_machines_without_results_are_not_named(
    commits: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {commits[0]: {COUNT: {"one": 1.0}}}, machine="idle")
    next((tmp_path / "results" / "idle").glob("*-*.json")).unlink()
    assert main([commits[0]], tmp_path) == 2
    error = capsys.readouterr().err
    assert f"asv run --record-samples {commits[3][:8]}^!" in error
    assert re.search("results exist for gpu: [^;]*; run:", error)


def test_missing_results_of_a_requested_compiler_name_it(
    commits: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_TOOLKIT", "13.5.0")
    assert main(commits[:2], tmp_path) == 2
    assert "by the nvcc of CUDA_TOOLKIT=13.5.0; results exist for no machine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("base", "head", "distance"), [(0, 2, "(2 commits), "), (0, 1, "(1 commit), "), (2, 0, "(2 commits back), ")]
)
def test_distance_of_commits_is_shown(
    base: int, head: int, distance: str, commits: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([commits[base], commits[head]], tmp_path)
    assert f"{commits[head][:8]} {distance}" in capsys.readouterr().out


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize("target", ["compare", "compare-compilers", "regressions", "bench"])
def test_make_exits_with_2_for_a_regression(target: str, code: int, tmp_path: Path) -> None:
    """If a command fails with any code, make exits with 2."""
    command = tmp_path / "kernelwatch"
    command.write_text(f"#!/bin/sh\necho said\nexit {code}\n")
    command.chmod(0o755)
    words = ["make", "--no-print-directory", "--old-file", ".venv/installed", target, f"BIN={tmp_path}", "BASE=a"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2 * code, "said\n")


def test_failing_import_is_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "msgspec.py").write_text("raise ImportError('no such library')")
    where = os.pathsep.join([str(tmp_path), *sys.path])
    words = [sys.executable, "-m", "kernelwatch", "compare", BASE, HEAD]
    environment = {**os.environ, "PYTHONPATH": where}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "ImportError: no such library" in done.stderr
    assert done.stderr.count("\n") == 1
