"""Links of Markdown files: each leads to a file and a heading."""

import re
from pathlib import Path

import pytest

from kernelwatch.config.project_root import ROOT

_CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)

FOLDERS = ("docs", "kernelwatch", "ptxcount")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in ROOT.glob(f"{folder}/**/*.md"))])


def anchors(text: str) -> set[str]:
    """Return the names that GitHub gives to headings."""
    headings = _HEADING.findall(re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def find_dead_links(page: Path) -> list[str]:
    links = []
    for file, anchor in _LINK.findall(_CODE.sub("", page.read_text(encoding="utf-8"))):
        target = page.parent / file if file else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            links.append(f"{file}#{anchor}")
    return links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_dead_links(page: Path) -> None:
    assert find_dead_links(page) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[a](other.md)", []),
        ("[a](other.md#the-end)", []),
        ("[a](#here)", []),
        ("`[a](none.md)`", []),
        ("[a](https://example.org/none)", []),
        ("[a](none.md)", ["none.md#"]),
        ("[a](other.md#nowhere)", ["other.md#nowhere"]),
        ("![a](none.png)", ["none.png#"]),
    ],
)
def test_dead_links_are_found(text: str, wrong: list[str], tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Other\n\n## The end\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(f"# Here\n\n{text}\n", encoding="utf-8")
    assert find_dead_links(page) == wrong
