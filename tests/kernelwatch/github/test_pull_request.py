"""What the workflows ask of GitHub: which pull request they are about, and one comment under it. `gh` is a stand-in."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.github import client as github
from kernelwatch.github import pull_request, texts
from kernelwatch.github.client import HERE, GitHubError
from kernelwatch.github.pull_request import find
from kernelwatch.review.commands import compare
from kernelwatch.store import git
from ptxcount.gate import markdown
from tests import commits
from tests.stored import BASE, HEAD, pair, write

#: Answers what the test has written, and keeps what it was asked.
STAND_IN = """#!{python}
import json, sys
folder = {folder!r}
with open(folder + "/asked", "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
answers = json.load(open(folder + "/answers"))
answer = next((text for word, text in answers.items() if word in sys.argv), None)
sys.exit("HTTP 403") if answer is None else sys.stdout.write(answer)
"""


class StandIn:
    """A `gh` that is none, in a folder that must come first on PATH."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        gh = folder / "gh"
        gh.write_text(STAND_IN.format(python=sys.executable, folder=str(folder)), encoding="utf-8")
        gh.chmod(0o755)
        self.answer({})

    def answer(self, answers: dict[str, str]) -> None:
        """A word among the arguments, and what is printed then; the first that is there counts."""
        (self._folder / "answers").write_text(json.dumps(answers), encoding="utf-8")

    def asked(self) -> list[tuple[list[str], dict[str, str]]]:
        """The arguments of each request, and the fields that they set, with what files hold."""
        path = self._folder / "asked"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [(words, dict(_fields(words))) for words in map(json.loads, lines)]


def _fields(words: list[str]) -> Iterator[tuple[str, str]]:
    for option, word in itertools.pairwise(words):
        name, _, value = word.partition("=")
        if option in ("-f", "-F"):
            yield name, Path(value[1:]).read_text(encoding="utf-8") if option + value[:1] == "-F@" else value


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A stand-in, first on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return StandIn(folder)


def described(number: Any = 7, head: Any = HEAD) -> dict[str, Any]:
    """A pull request, as events and answers describe it."""
    return {"number": number, "head": {"sha": head}}


RUN = {"head_sha": HEAD, "head_branch": "fix", "head_repository": {"owner": {"login": "someone"}}}
PULLS = f"{HERE}/pulls"

#: An event, what GitHub answers, and the number of the pull request or what is said.
EVENTS: list[tuple[dict[str, Any], list[Any], int | str]] = [
    ({"pull_request": described()}, [], 7),
    ({"workflow_run": RUN}, [described()], 7),
    ({"workflow_run": RUN}, [described(6, BASE), described()], 7),
    ({"workflow_run": RUN}, [described(7, BASE)], "someone:fix has 0 open pull requests at cccc.*moved on"),
    ({"workflow_run": RUN}, [], "has 0 open pull requests"),
    ({"workflow_run": RUN}, [described(), described(8)], "has 2 open pull requests"),
    ({"pull_request": described(number=0)}, [], "lacks pull_request.number"),
]


@pytest.mark.parametrize(("event", "answer", "expected"), EVENTS)
def test_find(event: dict[str, Any], answer: list[Any], expected: int | str, gh: StandIn) -> None:
    """The number and the head come from the event; GitHub is asked where the event has no number."""
    gh.answer({PULLS: "\n".join(map(json.dumps, answer))})
    if isinstance(expected, str):
        with pytest.raises(GitHubError, match=expected):
            find(event)
    else:
        assert find(event) == (expected, HEAD)
    for words, fields in gh.asked():
        assert words[:4] == ["api", "--method", "GET", PULLS]
        assert fields == {"state": "open", "base": "main", "head": "someone:fix"}


def test_base_is_where_the_branch_left_main(
    gh: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a clone that lacks the head: it is fetched and not checked out, and what main did since does not matter."""
    there, here = commits.begin(tmp_path / "there"), tmp_path / "here"
    base = commits.commit(there)
    git.text(tmp_path, "clone", "--quiet", f"file://{there}", str(here))
    git.text(there, "checkout", "--quiet", "-b", "branch")
    head = commits.commit(there)
    git.text(there, "checkout", "--quiet", "main")
    newer = commits.commit(there, message="newer")
    git.text(here, "pull", "--quiet")
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": described(head=head)}), encoding="utf-8")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(event))
    for _ in range(2):
        assert pull_request.main(here) == 0
        assert capsys.readouterr().out == f"number=7\nbase={base}\nhead={head}\n"
    assert git.text(here, "rev-parse", "HEAD") == newer
    event.write_text("{}", encoding="utf-8")
    assert pull_request.main(here) == 1
    assert "lacks pull_request.number" in capsys.readouterr().err


@pytest.fixture
def review(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A file with a review of two commits."""
    write(tmp_path, pair(1.0, 2.0))
    compare([BASE, HEAD, "--format", "markdown"], tmp_path)
    path = tmp_path / "review.md"
    path.write_text(capsys.readouterr().out, encoding="utf-8")
    return path


COMMENTS = f"{HERE}/issues/7/comments"
MARKER = markdown.MARKER.format("compare on gpu")

#: What is there already, and where the comment goes.
THERE: list[tuple[list[str], tuple[str, str]]] = [
    ([], ("POST", COMMENTS)),
    ([f"{MARKER}\nolder"], ("PATCH", f"{HERE}/issues/comments/1")),
    (["hello", f"{MARKER}\r\nolder", f"{MARKER}\n"], ("PATCH", f"{HERE}/issues/comments/2")),
    ([markdown.MARKER.format("compare on other"), f"quoted:\n{MARKER}"], ("POST", COMMENTS)),
]


@pytest.mark.parametrize(("there", "expected"), THERE)
def test_comment(there: list[str], expected: tuple[str, str], gh: StandIn, review: Path) -> None:
    """One comment a machine: the one that is there already is written anew."""
    listed = "\n".join(json.dumps({"id": number, "body": body}) for number, body in enumerate(there, 1))
    gh.answer({"--paginate": listed, "PATCH": "{}", "POST": "{}"})
    assert texts.comment([str(review), "--pull-request", "7"]) == 0
    (listing, _), (words, body) = gh.asked()
    assert COMMENTS in listing
    assert any(f'.user.login == "{github.AUTHOR}"' in word for word in listing)
    assert tuple(words[2:4]) == expected
    assert body == {"body": review.read_text(encoding="utf-8")}


@pytest.mark.parametrize("text", ["", "hello", f" {MARKER}", f"{MARKER} x", "<!-- other -->"])
def test_what_is_no_review_is_not_put(
    text: str, gh: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another text, and nothing is asked of GitHub."""
    path = tmp_path / "text.md"
    path.write_text(text, encoding="utf-8")
    assert texts.comment([str(path), "--pull-request", "7"]) == 1
    assert "the text is not a review" in capsys.readouterr().err
    assert gh.asked() == []
