"""One issue about what stands: opened, written anew, opened again, closed; never a second one. `gh` is a stand-in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.github import texts
from kernelwatch.github.client import HERE
from kernelwatch.review import issue as markdown
from tests.kernelwatch.github.test_pull_request import StandIn, gh

__all__ = ["gh"]

ISSUES = f"{HERE}/issues"
MARKER = markdown.MARKER

#: What a night's text may be.
NONE, ONE, TWO = (f"{MARKER}\n{markdown.STANDING.format(count)}\n\nseen {count}\n" for count in range(3))


def there(body: str | None, state: str = "open", number: int = 7) -> dict[str, Any]:
    """An issue, as GitHub lists it."""
    return {"number": number, "state": state, "body": body}


def put(gh: StandIn, folder: Path, text: str, listed: list[Any], *words: str) -> int:
    """Run the command; its exit code."""
    path = folder / "issue.md"
    path.write_text(text, encoding="utf-8")
    gh.answer({"--paginate": "\n".join(map(json.dumps, listed)), "PATCH": "{}", "POST": "{}"})
    return texts.issue([str(path), *words])


#: The text, what is there already, and the method, address and state that GitHub is asked for; None where it is not.
NIGHTS: dict[str, tuple[str, list[Any], tuple[str, str, str | None] | None]] = {
    "the first regression": (ONE, [], ("POST", ISSUES, None)),
    "the same": (ONE, [there(ONE)], None),
    "the same, with GitHub's ends of lines": (ONE, [there(ONE.replace("\n", "\r\n"))], None),
    "another": (TWO, [there(ONE)], ("PATCH", f"{ISSUES}/7", "open")),
    "mended": (NONE, [there(ONE)], ("PATCH", f"{ISSUES}/7", "closed")),
    "still mended": (NONE, [there(NONE, "closed")], None),
    "never one": (NONE, [], None),
    "a new one": (ONE, [there(NONE, "closed")], ("PATCH", f"{ISSUES}/7", "open")),
    "closed by hand": (ONE, [there(ONE, "closed")], ("PATCH", f"{ISSUES}/7", "open")),
    "others of this author": (ONE, [there("", number=1), there(f"see {MARKER}", number=2)], ("POST", ISSUES, None)),
    "the oldest": (TWO, [there("x", number=1), there(ONE, number=2), there(ONE)], ("PATCH", f"{ISSUES}/2", "open")),
}


@pytest.mark.parametrize(("text", "listed", "expected"), NIGHTS.values(), ids=NIGHTS)
def test_night(
    text: str, listed: list[Any], expected: tuple[str, str, str | None] | None, gh: StandIn, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """By default it is only said what would be done; with --write it is done, by one request."""
    assert put(gh, tmp_path, text, listed) == 0
    assert ("dry run: would " in capsys.readouterr().out) is (expected is not None)
    assert len(gh.asked()) == 1
    assert put(gh, tmp_path, text, listed, "--write") == 0
    assert "dry run" not in capsys.readouterr().out
    _, (listing, _), *asked = gh.asked()
    assert {"GET", ISSUES, "state=all", "direction=asc"} < set(listing)
    assert any('.user.login == "github-actions[bot]" and (.pull_request | not)' in word for word in listing)
    if expected is None:
        assert asked == []
        return
    ((words, body),) = asked
    assert (*words[2:4], body.get("state")) == expected
    assert body["body"] == text
    standing = {NONE: "No regression of main", ONE: "1 regression of main", TWO: "2 regressions of main"}
    assert body["title"] == standing[text]
    assert (body.get("state_reason") == "completed") is (text == NONE)


@pytest.mark.parametrize("text", ["", "hello", f" {ONE}", MARKER, f"{MARKER}\nstanding: 1", ONE.replace("1", "x")])
def test_another_text(text: str, gh: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is asked of GitHub."""
    assert put(gh, tmp_path, text, [], "--write") == 1
    assert "the text is not that of an issue" in capsys.readouterr().err
    assert gh.asked() == []


def test_the_text_is_that_of_the_report() -> None:
    """What kernelwatch.review.regressions writes, this takes."""
    for text in (NONE, ONE):
        assert texts._ISSUE.match(text)
    assert texts._ISSUE.match(markdown.render([], Path()))
