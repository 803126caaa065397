"""The documentation beside the results: `make docs` builds it, and the site takes it along if it was built."""

from __future__ import annotations

import shutil
from pathlib import Path

from kernelwatch.project import ROOT
from kernelwatch.show.site.vendor import SiteError

BUILT = ROOT / "docs" / "_build" / "html"

#: Where asv's navigation ends, and what is put there.
_NAVIGATION = '<li id="nav-li-graphdisplay">'
_LINK = '<li id="nav-li-documentation"><a href="docs/index.html">Docs</a></li>\n        '


def add(html: Path, built: Path = BUILT) -> None:
    """Copy the documentation into a site, and link to it from the site's navigation.

    Parameters
    ----------
    html : Path
        The site's folder, with asv's `index.html` in it.
    built : Path
        Where Sphinx has written the documentation. Nothing is done if there is no such folder.

    Raises
    ------
    SiteError
        The navigation does not end as expected.
    """
    if not built.is_dir():
        return
    index = html / "index.html"
    text = index.read_text(encoding="utf-8")
    if text.count(_NAVIGATION) != 1:
        raise SiteError(f"asv's index.html has {_NAVIGATION} {text.count(_NAVIGATION)} times, not once")
    index.write_text(text.replace(_NAVIGATION, _LINK + _NAVIGATION), encoding="utf-8")
    shutil.copytree(built, html / "docs")
