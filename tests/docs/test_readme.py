"""The generated parts of the docs are what the stored results say; the README is short."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from docs.figures import picture, tables
from kernelwatch.config.project_root import ROOT
from kernelwatch.store.results import History


@pytest.fixture(scope="module")
def history() -> History:
    """Return the stored results that are shown."""
    return History(tables.MACHINE, ROOT)


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_tables_are_fresh(page: Path, history: History) -> None:
    """Nobody edits a table by hand, or forgets to make it anew."""
    text, lines = page.read_text(encoding="utf-8"), tables.PAGES[page](tables.ResultTables(history))
    assert tables.replace_between_markers(text, lines) == text, f"{page.name} is stale; run: make readme"


def test_picture_is_fresh(history: History) -> None:
    """The picture shows the stored results."""
    text = (ROOT / "docs" / "bandwidth.svg").read_text(encoding="utf-8")
    match = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    assert match is not None
    assert json.loads(html.unescape(match[1])) == picture.collect_rates(history), (
        "the picture is stale; run: make readme"
    )


@pytest.mark.parametrize("text", ["", tables.BEGIN, tables.END, tables.END + tables.BEGIN])
def test_markers_are_needed(text: str) -> None:
    """A page without its markers is refused, not overwritten."""
    with pytest.raises(LookupError, match="lacks the markers"):
        tables.replace_between_markers(text, ["new"])


def test_text_around_the_table_stays() -> None:
    """Only what stands between the markers is replaced."""
    text = f"before {tables.BEGIN} old {tables.END} after"
    assert tables.replace_between_markers(text, ["new"]) == f"before {tables.BEGIN}\n\nnew\n{tables.END} after"


def test_unknown_machine() -> None:
    """A machine without results is named, with those that have some."""
    with pytest.raises(
        FileNotFoundError, match=r"no results of 'nope', only of no-gpu-x86_64, .*nvidia-h200; run: asv run"
    ):
        History("nope", ROOT)


def test_words() -> None:
    """A reader who is in a hurry reads the README; the docs and the evidence are read, too, only if they are short."""
    folders = {"README.md": 1000, "docs/*.md": 9000}
    words = {
        folder: sum(len(page.read_text(encoding="utf-8").split()) for page in ROOT.glob(folder)) for folder in folders
    }
    assert {folder: count for folder, count in words.items() if count > folders[folder]} == {}
