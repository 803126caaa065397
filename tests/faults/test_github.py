"""What GitHub, or whoever speaks in its name, may say to the workflows' commands: exit code 1 and one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernelwatch.github import client as github
from kernelwatch.github import comment, issue, pull_request
from kernelwatch.review.regressions import markdown as regressions
from ptxcount.gate import markdown
from tests.kernelwatch.github.test_pull_request import PULLS, REPOSITORY, RUN, StandIn, described, gh

__all__ = ["gh"]

MARKER = markdown.MARKER.format("compare on gpu")


def _said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err[:-1].isprintable()
    return captured.err


def _run(**changed: Any) -> dict[str, Any]:
    return {"workflow_run": RUN | changed}


#: The event, what GitHub answers where it is asked, and the line.
EVENTS: list[tuple[Any, str, str]] = [
    (b"", "", "GitHub's answer is not JSON: "),
    (b"\xff\xfe", "", "the event in "),
    (b"[" * 100_000, "", "GitHub's answer is not JSON: "),
    (b"[]", "", "the event in "),
    (None, "", "the event in "),
    ({"pull_request": None}, "", "GitHub's answer lacks number: None"),
    ({"pull_request": {"number": 7}}, "", "GitHub's answer lacks head.sha: "),
    ({"pull_request": {"number": 7, "head": None}}, "", "GitHub's answer lacks head.sha: "),
    ({"pull_request": described(-7)}, "", "-7 is not a number of a pull request"),
    ({"pull_request": described("5/../../../x")}, "", "GitHub's answer lacks number: "),
    ({"pull_request": described(True)}, "", "True is not a number of a pull request"),
    ({"pull_request": described(7.5)}, "", "GitHub's answer lacks number: "),
    ({"pull_request": described(head="main")}, "", "'main' is not the hash of a commit"),
    ({"pull_request": described(head="0" * 40 + "\n")}, "", "'000"),
    ({"pull_request": []}, "", "GitHub's answer lacks number: []"),
    ({"issue": {}}, "", "the event concerns none of pull_request, workflow_run"),
    (b'{"pull_request": {"number": ' + b"9" * 5000 + b"}}", "", "GitHub's answer is not JSON: "),
    ({"pull_request": described(head="0" * 40)}, "", f"git cannot tell where {'0' * 40} left main: "),
    ({"workflow_run": None}, "", "GitHub's answer lacks head_sha: None"),
    (_run(head_branch=None), "", "GitHub's answer lacks head_branch: "),
    (_run(head_repository=None), "", "GitHub's answer lacks head_repository.owner.login: "),
    (_run(head_branch="\ud800"), "", "gh api repos/owner/project/pulls: 'utf-8' codec can't encode"),
    (_run(head_branch="a\0b"), "", "gh api repos/owner/project/pulls: embedded null byte"),
    (_run(), "<html>\x1b[2J\n", "GitHub's answer is not JSON: "),
    (_run(), "null", "GitHub lists no pull requests of someone:fix: None"),
    (_run(), '{"message": "Not Found"}', "GitHub lists no pull requests of someone:fix: "),
    (_run(), "[null]", "GitHub's answer lacks head.sha: None"),
    (_run(), json.dumps([described("5/../../../x")]), "GitHub's answer lacks number: "),
    (_run(), json.dumps([described(-7)]), "-7 is not a number of a pull request"),
]


@pytest.mark.parametrize(("event", "answer", "line"), EVENTS)
def test_pull_request(
    event: Any, answer: str, line: str, gh: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Nothing is printed for $GITHUB_OUTPUT."""
    path = tmp_path / "event.json"
    if event is not None:
        path.write_bytes(event if isinstance(event, bytes) else json.dumps(event).encode())
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(path))
    gh.answer({PULLS: answer})
    assert pull_request.main(tmp_path) == 1
    assert _said(capsys).startswith(line)


#: What is there already, where {0} is the marker of the text and {1} the name of its number, and the line.
LISTED: list[tuple[str, str]] = [
    ("<html>", "GitHub's answer is not JSON: "),
    ("null", "GitHub's answer lacks body: None"),
    ('{{"{1}": 1, "state": "open", "body": null}}', "GitHub's answer lacks body: "),
    ('{{"{1}": null, "state": "open", "body": "{0}"}}', "GitHub's answer lacks {1}: "),
    ('{{"{1}": -7, "state": "open", "body": "{0}"}}', "-7 is not a number of "),
    ('{{"{1}": true, "state": "open", "body": "{0}"}}', "True is not a number of "),
    ('{{"{1}": "5/../../../x", "state": "open", "body": "{0}"}}', "GitHub's answer lacks {1}: "),
]


@pytest.mark.parametrize(("listed", "line"), [*LISTED, ("", "gh api repos/owner/project/issues")])
@pytest.mark.parametrize("command", [comment, issue])
def test_listed(
    command: ModuleType, listed: str, line: str, gh: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written; nor is it if GitHub refuses to list anything."""
    is_issue, path = command is issue, tmp_path / "text.md"
    marker, number = (regressions.MARKER, "number") if is_issue else (MARKER, "id")
    path.write_text(f"{marker}\n{regressions.STANDING.format(1)}\n", encoding="utf-8")
    gh.answer({"--paginate": listed.format(marker, number), "PATCH": "{}", "POST": "{}"} if listed else {})
    assert command.main([str(path), *(["--write"] if is_issue else ["--pull-request", "7"])]) == 1
    assert _said(capsys).startswith(line.format(marker, number))
    assert len(gh.asked()) == 1


#: The review's file, the pull request, the repository, and the line.
ASKED: list[tuple[bytes | None, str, str | None, str]] = [
    (None, "7", REPOSITORY, "[Errno 2] No such file or directory: "),
    (b"\xff", "7", REPOSITORY, "'utf-8' codec can't decode byte 0xff"),
    (MARKER.encode(), "-7", REPOSITORY, "-7 is not a number of a pull request"),
    (MARKER.encode(), "0", REPOSITORY, "0 is not a number of a pull request"),
    (MARKER.encode(), "7", None, "GITHUB_REPOSITORY is not set"),
    (MARKER.encode(), "7", "owner/..", "GITHUB_REPOSITORY is 'owner/..', which is not of the form owner/name"),
    (MARKER.encode(), "7", "owner/project/../x", "GITHUB_REPOSITORY is 'owner/project/../x', which is"),
]


@pytest.mark.parametrize(("review", "number", "repository", "line"), ASKED)
def test_odd_call(
    review: bytes | None, number: str, repository: str | None, line: str, gh: StandIn, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """GitHub is not asked."""
    path = tmp_path / "review.md"
    if review is not None:
        path.write_bytes(review)
    if repository is None:
        monkeypatch.delenv("GITHUB_REPOSITORY")
    else:
        monkeypatch.setenv("GITHUB_REPOSITORY", repository)
    assert comment.main([str(path), f"--pull-request={number}"]) == 1
    assert _said(capsys).startswith(line)
    assert gh.asked() == []


#: A script that stands for gh, or none, and the line.
PROGRAMS: list[tuple[str | None, str]] = [
    (None, "gh api repos/owner/project/issues/7/comments: [Errno 2] No such file or directory: 'gh'"),
    ("#!/bin/sh\nexit 4\n", "gh api repos/owner/project/issues/7/comments: exit code 4"),
    ("#!/bin/sh\nkill -9 $$\n", "gh api repos/owner/project/issues/7/comments: exit code -9"),
    ("#!/bin/sh\nprintf 'two\\nlines' >&2; exit 1\n", "gh api repos/owner/project/issues/7/comments: two lines"),
    ("#!/bin/sh\nprintf '\\377'\n", "gh api repos/owner/project/issues/7/comments: 'utf-8' codec can't decode"),
    ("#!/bin/sh\nexec sleep 60\n", "gh api repos/owner/project/issues/7/comments: "),
    ("no program", "gh api repos/owner/project/issues/7/comments: [Errno 8] Exec format error"),
]


#: The same of git.
GITS: list[tuple[str | None, str]] = [
    (None, "git does not run: [Errno 2] No such file or directory: 'git'"),
    ("#!/bin/sh\nexit 4\n", "git fetch in /"),
    ("#!/bin/sh\nprintf 'two\\nlines\\377' >&2; exit 1\n", "git fetch in /"),
    ("#!/bin/sh\nexit 0\n", "it says ''"),
    ("#!/bin/sh\nprintf 'x\\nbase=y'\n", "it says 'x"),
    ("#!/bin/sh\nexec sleep 60\n", "git does not run: Command "),
]


def _program(name: str, script: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing but a script be found, and sleep."""
    monkeypatch.setenv("GITHUB_REPOSITORY", REPOSITORY)
    monkeypatch.setattr(github, "TIME_LIMIT", 1)
    sleep = shutil.which("sleep")
    assert sleep is not None
    (folder / "sleep").symlink_to(sleep)
    monkeypatch.setenv("PATH", str(folder))
    if script is not None:
        (folder / name).write_text(script, encoding="utf-8")
        (folder / name).chmod(0o755)


@pytest.mark.parametrize(("script", "line"), GITS)
def test_git(
    script: str | None, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is missing, fails, hangs or prints what is no commit, which would become lines of $GITHUB_OUTPUT."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": described(head="0" * 40)}))
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(event))
    _program("git", script, tmp_path, monkeypatch)
    assert pull_request.main(tmp_path) == 1
    assert _said(capsys).startswith(f"git cannot tell where {'0' * 40} left main: {line}")


@pytest.mark.parametrize(("script", "line"), PROGRAMS)
def test_gh(
    script: str | None, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is missing, fails, dies, hangs or prints garbage."""
    _program("gh", script, tmp_path, monkeypatch)
    (tmp_path / "review.md").write_text(MARKER, encoding="utf-8")
    assert comment.main([str(tmp_path / "review.md"), "--pull-request", "7"]) == 1
    assert _said(capsys).startswith(line)
