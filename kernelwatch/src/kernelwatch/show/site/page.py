"""asv's own page, `asv.html` beside this project's: as asv made it, but for what it loads from other hosts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kernelwatch.show.site.pages import POLICY
from kernelwatch.show.site.vendor import SiteError

_CHARSET = '<meta http-equiv="Content-Type" content="text/html; charset=utf-8">'
_LOADED = re.compile(r'<(?P<tag>script|link)\b[^>]*?\b(?:src|href)="(?P<url>(?:https?:)?//[^"]+)"[^>]*>')
#: The policy lets no script run that stands in the page. This one leads to asv's page of errors where a script fails.
_INLINE = re.compile(r"<script[^>]*>\s*function js_load_failure\(\).*?</script>", re.DOTALL)
_ENTRY = '<li id="nav-li-" class="active">'
_END_OF_HEAD = "</head>"


def rewritten(text: str, places: Mapping[str, str]) -> str:
    """The page without other hosts and inline scripts, and with a link to this project's pages.

    Parameters
    ----------
    text : str
        Asv's `index.html`.
    places : mapping of str to str
        What stands for each address that it loads from, under the site.

    Raises
    ------
    SiteError
        Asv's page is not as this was written for.
    """

    def local(match: re.Match[str]) -> str:
        url = match["url"]
        if url not in places:
            raise SiteError(f"asv's index.html loads {url}, which show/site/vendor/manifest.json does not replace")
        if match["tag"] == "link":
            return f'<link rel="stylesheet" href="{places[url]}">'
        return f'<script src="{places[url]}">'

    text, count = _INLINE.subn("", text)
    for mark, found in (
        ("js_load_failure", count),
        *((mark, text.count(mark)) for mark in (_CHARSET, _ENTRY, _END_OF_HEAD)),
    ):
        if found != 1:
            raise SiteError(f"asv's index.html has {mark} {found} times, not once: another version of asv?")
    text = text.replace(_CHARSET, f'{_CHARSET}\n    <meta http-equiv="Content-Security-Policy" content="{POLICY}">')
    text = text.replace(_ENTRY, f'<li><a href="index.html">Overview</a></li>\n        {_ENTRY}')
    script = '<script src="project/files.js"></script>\n  '
    return _LOADED.sub(local, text).replace(_END_OF_HEAD, f"{script}{_END_OF_HEAD}")
