"""The documentation beside the results."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwatch.show.site import documentation
from kernelwatch.show.site.vendor import SiteError

INDEX = '<ul><li id="nav-li-noise"></li><li id="nav-li-graphdisplay"></li></ul>'


@pytest.fixture
def html(tmp_path: Path) -> Path:
    """A site with nothing but asv's navigation."""
    folder = tmp_path / "html"
    folder.mkdir()
    (folder / "index.html").write_text(INDEX, encoding="utf-8")
    return folder


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A documentation of one page."""
    folder = tmp_path / "built"
    folder.mkdir()
    (folder / "index.html").write_text("The documentation", encoding="utf-8")
    return folder


def test_built(html: Path, built: Path) -> None:
    """It is copied, and linked to from the navigation."""
    documentation.add(html, built)
    assert (html / "docs" / "index.html").read_text(encoding="utf-8") == "The documentation"
    assert (html / "index.html").read_text(encoding="utf-8").count('<a href="docs/index.html">Docs</a>') == 1


def test_not_built(html: Path, tmp_path: Path) -> None:
    """The site is as it was: no link leads nowhere."""
    documentation.add(html, tmp_path / "nothing")
    assert (html / "index.html").read_text(encoding="utf-8") == INDEX
    assert not (html / "docs").exists()


def test_another_navigation(html: Path, built: Path) -> None:
    """Where the link cannot be put, publishing fails, instead of losing it."""
    (html / "index.html").write_text("<ul></ul>", encoding="utf-8")
    with pytest.raises(SiteError, match="0 times, not once"):
        documentation.add(html, built)
