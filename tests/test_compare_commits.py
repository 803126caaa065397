"""Which commits, machine and environment the review compares, and what it says when it cannot."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from report.compare.__main__ import main
from tests.stored import BASE, COUNT, HEAD, pair, reviewed, write


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nope", HEAD], "'nope' names no commit, .* stored results of bbbbbbbb, cccccccc; give a branch"),
        (["--", "--help", HEAD], "'--help' names no commit"),
        (["bbbb", HEAD, "--machine", "x"], "holds results of gpu; given: x; choose one"),
        (["bbbb", "dddd"], "'dddd' names no commit"),
        (["", ""], "'' names no commit"),
    ],
)
def test_errors(words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One error that says what was given, what exists and what to do; exit code 2."""
    write(tmp_path, pair(1.0, 1.0, COUNT))
    assert main(words, tmp_path) == 2
    written = capsys.readouterr()
    assert written.err.startswith("cannot compare: ")
    assert written.out == ""
    assert re.search(message, written.err)


def test_no_results_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A fresh clone without results is told how to get some."""
    assert main(["HEAD"], tmp_path) == 2
    assert "no machine" in (error := capsys.readouterr().err)
    assert "make bench" in error


@pytest.mark.parametrize(("machine", "exit_code"), [([], 2), (["--machine", "other"], 0)])
def test_several_machines(
    machine: list[str], exit_code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which machine is asked for where several have results, and this one has none."""
    for name in ("gpu", "other"):
        write(tmp_path, pair(1.0, 1.0, COUNT), machine=name)
    assert main([BASE, HEAD, *machine], tmp_path) == exit_code
    assert ("have results on gpu, other; choose one" in capsys.readouterr().err) == (exit_code == 2)


def test_another_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commits that were measured with different Pythons are not compared."""
    write(tmp_path, {BASE: {COUNT: {"one": 1.0}}}, environment="python3.10")
    write(tmp_path, {HEAD: {COUNT: {"one": 1.0}}}, environment="python3.11")
    assert main([BASE, HEAD], tmp_path) == 2
    assert "was measured in python3.10 and" in capsys.readouterr().err


def test_git_revisions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tags, branches and HEAD are git's; a commit without results is named with what to run."""
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    commits = []
    for words in (["init", "-q"], *(["commit", "-q", "--allow-empty", "-m", text] for text in "abc")):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
        if words[0] == "commit":
            commits.append(subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=tmp_path, text=True).strip())
    subprocess.run([*git, "tag", "v1", commits[0]], cwd=tmp_path, check=True)
    write(tmp_path, {commit: {COUNT: {"one": 1.0}} for commit in commits[:2]})
    code, document = reviewed(tmp_path, capsys, "v1", "HEAD~1")
    assert (code, document["base"]["commit"], document["head"]["commit"]) == (0, *commits[:2])
    assert main(["v1"], tmp_path) == 2
    assert f"asv run --record-samples {commits[2][:8]}^!" in capsys.readouterr().err
