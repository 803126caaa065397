"""Sphinx's configuration: `make docs`."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent

# Both autodoc here and the commands that the reference runs import the packages from the checkout.
SOURCES = [str(ROOT), str(ROOT / "ptxcount" / "src"), str(ROOT / "kernelwatch" / "src")]
sys.path[:0] = SOURCES
os.environ["PYTHONPATH"] = os.pathsep.join(SOURCES)
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
os.environ["COLUMNS"] = "80"  # for argparse

project = "coalescing-watch"
author = "the authors of coalescing-watch"
copyright = "2026, " + author

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinxcontrib.programoutput"]
exclude_patterns = ["_build"]

# Links to headings work as they do on GitHub.
myst_heading_anchors = 4  # levels
myst_enable_extensions = ["colon_fence"]

# autodoc already documents a class's members below the class.
numpydoc_show_class_members = False
autodoc_typehints = "none"  # docstrings name the types
autodoc_member_order = "bysource"

highlight_language = "none"  # blocks without a language are commands and their output

html_theme = "pydata_sphinx_theme"
html_sidebars = {"tutorial": []}  # the tutorial has no subpages
html_title = project
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    # The site of results, where `make site` puts these pages beside it.
    "external_links": [{"name": "Results", "url": "../index.html"}],
}
html_show_sourcelink = False
html_copy_source = False

#: File of the repository -> page of the documentation that includes the file.
INCLUDED = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "ptxcount/README.md": "ptxcount.md",
    "ptxcount/ADVICE.md": "advice.md",
    "kernelwatch/README.md": "kernelwatch.md",
}


def _point_links_at_pages(app: Sphinx, docname: str, source: list[str]) -> None:
    """Point a page's links to included files at their pages."""
    for file, page in INCLUDED.items():
        source[0] = source[0].replace(f"](../{file}", f"]({page}")


def _point_included_links_at_pages(app: Sphinx, path: Path, docname: str, source: list[str]) -> None:
    """Point the links of an included file, which start in the repository's root, at pages."""
    source[0] = source[0].replace("](docs/", "](")
    for file, page in INCLUDED.items():
        source[0] = source[0].replace(f"]({file}", f"]({page}")


def _show_site_only_parts(app: Sphinx, docname: str, source: list[str]) -> None:
    """Show the parts that only Sphinx renders: GitHub and editors would show bare directives."""
    source[0] = re.sub(r"<!-- on the site:\n(.*?)-->\n", r"\1", source[0], flags=re.DOTALL)


def setup(app: Sphinx) -> None:
    """Connect the functions that make links work both on GitHub and on the documentation's site."""
    app.connect("source-read", _show_site_only_parts)
    app.connect("source-read", _point_links_at_pages)
    app.connect("include-read", _point_included_links_at_pages)
