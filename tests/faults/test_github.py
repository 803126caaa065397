"""What GitHub, or whoever speaks in its name, may say to the workflows' commands: exit code 1 and one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.github import client as github
from kernelwatch.github import pull_request
from kernelwatch.github.client import HERE
from kernelwatch.github.texts import comment, issue
from kernelwatch.review import issue as regressions
from ptxcount.gate import markdown
from tests.kernelwatch.github.test_pull_request import PULLS, RUN, StandIn, described, gh

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
    (b"\xff\xfe", "", "'utf-8' codec can't decode byte 0xff"),
    (None, "", "[Errno 2] No such file or directory: "),
    ({"pull_request": {"number": 7, "head": None}}, "", "GitHub's answer lacks pull_request.head.sha: "),
    ({"pull_request": described(-7)}, "", "GitHub's answer lacks pull_request.number: "),
    ({"pull_request": described("5/../../../x")}, "", "GitHub's answer lacks pull_request.number: "),
    ({"pull_request": described(head="main")}, "", "'main' is not the hash of a commit"),
    ({"pull_request": described(head="0" * 40 + "\n")}, "", "'000"),
    ({"issue": {}}, "", "GitHub's answer lacks pull_request.number: "),
    ({"pull_request": described(head="0" * 40)}, "", f"git cannot tell where {'0' * 40} left main: "),
    ({"workflow_run": None}, "", "GitHub's answer lacks head_sha: None"),
    (_run(head_repository=None), "", "GitHub's answer lacks head_repository.owner.login: "),
    (_run(head_branch="\ud800"), "", f"gh api {HERE}/pulls: 'utf-8' codec can't encode"),
    (_run(), "<html>\x1b[2J\n", "GitHub's answer is not JSON: "),
    (_run(), json.dumps(described(-7)), "GitHub's answer lacks pull_request.number: "),
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
    ('{{"{1}": "5/../../../x", "state": "open", "body": "{0}"}}', "GitHub's answer lacks {1}: "),
]


@pytest.mark.parametrize(("listed", "line"), [*LISTED, ("", f"gh api {HERE}/issues")])
@pytest.mark.parametrize("command", [comment, issue])
def test_listed(
    command: Callable[[list[str]], int],
    listed: str,
    line: str,
    gh: StandIn,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is written; nor is it if GitHub refuses to list anything."""
    is_issue, path = command is issue, tmp_path / "text.md"
    marker, number = (regressions.MARKER, "number") if is_issue else (MARKER, "id")
    path.write_text(f"{marker}\n{regressions.STANDING.format(1)}\n", encoding="utf-8")
    gh.answer({"--paginate": listed.format(marker, number), "PATCH": "{}", "POST": "{}"} if listed else {})
    assert command([str(path), *(["--write"] if is_issue else ["--pull-request", "7"])]) == 1
    assert _said(capsys).startswith(line.replace("{1}", number))
    assert len(gh.asked()) == 1


@pytest.mark.parametrize(
    ("review", "line"), [(None, "[Errno 2] No such file"), (b"\xff", "'utf-8' codec can't decode")]
)
def test_odd_file(
    review: bytes | None, line: str, gh: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """GitHub is not asked."""
    path = tmp_path / "review.md"
    if review is not None:
        path.write_bytes(review)
    assert comment([str(path), "--pull-request=7"]) == 1
    assert _said(capsys).startswith(line)
    assert gh.asked() == []


#: The beginning of what is said of gh, and of git; and of each a script that stands for it, or none, and the rest.
GH, GIT = f"gh api {HERE}/issues/7/comments: ", f"git cannot tell where {'0' * 40} left main: "
PROGRAMS: list[tuple[str, str | None, str]] = [
    (GH, None, "[Errno 2] No such file or directory: 'gh'"),
    (GH, "#!/bin/sh\nprintf 'two\\nlines' >&2; exit 1\n", "two lines"),
    (GH, "#!/bin/sh\nprintf '\\377'\n", "'utf-8' codec can't decode"),
    (GH, "#!/bin/sh\nexec sleep 60\n", ""),
    (GIT, None, "git does not run: [Errno 2] No such file or directory: 'git'"),
    (GIT, "#!/bin/sh\nprintf 'two\\nlines\\377' >&2; exit 1\n", "git fetch in /"),
    (GIT, "#!/bin/sh\nexit 0\n", "'' is not the hash"),
    (GIT, "#!/bin/sh\nprintf 'x\\nbase=y'\n", "'x"),
    (GIT, "#!/bin/sh\nexec sleep 60\n", "git does not run: Command "),
]


@pytest.mark.parametrize(("begins", "script", "line"), PROGRAMS)
def test_programs(
    begins: str, script: str | None, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """One is missing, fails, hangs or prints garbage, which would become lines of $GITHUB_OUTPUT."""
    event, review, program = tmp_path / "event.json", tmp_path / "review.md", tmp_path / begins.partition(" ")[0]
    event.write_text(json.dumps({"pull_request": described(head="0" * 40)}))
    review.write_text(MARKER, encoding="utf-8")
    sleep = shutil.which("sleep")
    assert sleep is not None
    (tmp_path / "sleep").symlink_to(sleep)
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(event))
    monkeypatch.setattr(github, "TIME_LIMIT", 1)
    monkeypatch.setenv("PATH", str(tmp_path))
    if script is not None:
        program.write_text(script, encoding="utf-8")
        program.chmod(0o755)
    command = [str(review), "--pull-request", "7"]
    assert (pull_request.main(tmp_path) if begins == GIT else comment(command)) == 1
    assert _said(capsys).startswith(begins + line)
