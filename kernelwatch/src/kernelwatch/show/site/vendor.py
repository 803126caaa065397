"""The scripts and styles of other projects, `vendor/`, and asv's own page, which loads them from there.

`vendor/manifest.json` has a row for each file: the npm package that it comes from, its licence and SHA-256, and what it
`replaces`: the address that asv's page loads it from; null of a script that this project's pages add.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from asv.util import UserError

FOLDER = Path(__file__).parent / "vendor"

_CHARSET = '<meta http-equiv="Content-Type" content="text/html; charset=utf-8">'
_LOADED = re.compile(r'<(?P<tag>script|link)\b[^>]*?\b(?:src|href)="(?P<url>(?:https?:)?//[^"]+)"[^>]*>')
#: The policy lets no script run that stands in the page. This one leads to asv's page of errors where a script fails.
_INLINE = re.compile(r"<script[^>]*>\s*function js_load_failure\(\).*?</script>", re.DOTALL)
_ENTRY = '<li id="nav-li-" class="active">'
_END_OF_HEAD = "</head>"


class SiteError(UserError):  # type: ignore[misc]
    """The site cannot be made as it should be; asv shows its text, and exits with 1."""


def manifest() -> list[dict[str, Any]]:
    """Return the rows of the files that are kept."""
    rows: list[dict[str, Any]] = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))
    return rows


def scripts() -> list[str]:
    """Where the scripts that this project's charts need lie under the site, in the order of the manifest."""
    return [f"vendor/{row['file']}" for row in manifest() if row["replaces"] is None]


def rewritten(text: str, policy: str) -> str:
    """Return asv's `index.html` without other hosts and inline scripts, and with a link to this project's pages.

    Raises
    ------
    SiteError
        The page is not as this was written for.
    """
    places = {row["replaces"]: f"vendor/{row['file']}" for row in manifest()}

    def local(match: re.Match[str]) -> str:
        url = match["url"]
        if url not in places:
            raise SiteError(f"asv's index.html loads {url}, which show/site/vendor/manifest.json does not replace")
        return (
            f'<link rel="stylesheet" href="{places[url]}">'
            if match["tag"] == "link"
            else f'<script src="{places[url]}">'
        )

    text, count = _INLINE.subn("", text)
    marks = {"js_load_failure": count, **{mark: text.count(mark) for mark in (_CHARSET, _ENTRY, _END_OF_HEAD)}}
    for mark, found in marks.items():
        if found != 1:
            raise SiteError(f"asv's index.html has {mark} {found} times, not once: another version of asv?")
    text = text.replace(_CHARSET, f'{_CHARSET}\n    <meta http-equiv="Content-Security-Policy" content="{policy}">')
    text = text.replace(_ENTRY, f'<li><a href="index.html">Overview</a></li>\n        {_ENTRY}')
    return _LOADED.sub(local, text).replace(_END_OF_HEAD, f'<script src="project/files.js"></script>\n  {_END_OF_HEAD}')
