"""The README's generated parts are what the stored results say."""

from __future__ import annotations

import html
import json
import re

import pytest

from benchmarks import ROOT
from report import picture, readme
from report.results import History


@pytest.fixture(scope="module")
def history() -> History:
    """The stored results that the README shows."""
    return History(readme.MACHINE)


def test_table_is_fresh(history: History) -> None:
    """Nobody edits the table by hand, or forgets to make it anew."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.rewritten(text, readme.block(history)) == text, "the README is stale; run: make readme"


def test_picture_is_fresh(history: History) -> None:
    """The picture shows the stored results."""
    text = (ROOT / "docs" / "bandwidth.svg").read_text(encoding="utf-8")
    match = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    assert match is not None
    assert json.loads(html.unescape(match[1])) == picture.data(history), "the picture is stale; run: make readme"


@pytest.mark.parametrize("text", ["", readme.BEGIN, readme.END, readme.END + readme.BEGIN])
def test_markers_are_needed(text: str) -> None:
    """A README without its markers is refused, not overwritten."""
    with pytest.raises(LookupError, match="lacks the markers"):
        readme.rewritten(text, "new")


def test_text_around_the_table_stays() -> None:
    """Only what stands between the markers is replaced."""
    text = f"before {readme.BEGIN} old {readme.END} after"
    assert readme.rewritten(text, "new") == "before new after"


def test_unknown_machine() -> None:
    """A machine without results is named, with those that have some."""
    with pytest.raises(
        FileNotFoundError, match=r"no results of 'nope', only of no-gpu-x86_64, .*nvidia-h200; run: make"
    ):
        History("nope")
