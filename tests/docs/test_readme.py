"""Generated parts of the docs are current, and pages are within their limits."""

from __future__ import annotations

import html
import json
import re

import pytest

from docs.figures import picture, tables
from kernelwatch.config.project_root import ROOT
from kernelwatch.store.results import History


@pytest.fixture(scope="module")
def history() -> History:
    """Return the stored results that the docs show."""
    return History(tables.MACHINE, ROOT)


def test_tables_are_current(history: History) -> None:
    text, lines = tables.PAGE.read_text(encoding="utf-8"), tables.render_page(tables.ResultTables(history))
    assert tables.replace_between_markers(text, lines) == text, "results.md is stale; run: make readme"


def test_picture_is_current(history: History) -> None:
    text = (ROOT / "docs" / "bandwidth.svg").read_text(encoding="utf-8")
    match = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    assert match is not None
    assert json.loads(html.unescape(match[1])) == picture.collect_rates(history), (
        "docs/bandwidth.svg is stale; run: make readme"
    )


@pytest.mark.parametrize("text", ["", tables.BEGIN, tables.END, tables.END + tables.BEGIN])
def test_missing_or_swapped_markers_are_an_error(text: str) -> None:
    with pytest.raises(LookupError, match="lacks the markers"):
        tables.replace_between_markers(text, ["new"])


def test_text_outside_markers_stays() -> None:
    text = f"before {tables.BEGIN} old {tables.END} after"
    assert tables.replace_between_markers(text, ["new"]) == f"before {tables.BEGIN}\n\nnew\n{tables.END} after"


def test_pages_name_dependencies_of_ptxcount() -> None:
    """README and CONTRIBUTING name all packages that ptxcount needs."""
    project = (ROOT / "ptxcount" / "pyproject.toml").read_text(encoding="utf-8")
    names = re.findall(r'^    "(\w+)', project.partition("\ndependencies = [")[2].partition("]")[0], re.MULTILINE)
    for page, begin in {"CONTRIBUTING.md": "| `ptxcount/` |", "ptxcount/README.md": "pip install ./ptxcount "}.items():
        lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
        (line,) = [line.lower() for line in lines if line.startswith(begin)]
        assert [name for name in names if name not in line] == []


def test_word_limits() -> None:
    """README has at most 1,000 words, and docs/*.md have at most 9,000."""
    for folder, most in {"README.md": 1000, "docs/*.md": 9000}.items():
        assert sum(len(page.read_text(encoding="utf-8").split()) for page in ROOT.glob(folder)) <= most, folder
