"""asv's `index.html`, rewritten: nothing from other hosts, a policy that forbids it, and this project's pages."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernelwatch.show.site.vendor import SiteError


@dataclass(frozen=True)
class Page:
    """A page of this project.

    Parameters
    ----------
    name : str
        In addresses: `#name`.
    label : str
        In the navigation.
    before : str or None
        The entry of the navigation that it stands before; None of a page that only links lead to.
    """

    name: str
    label: str
    before: str | None = '<li id="nav-li-graphdisplay">'


#: Of the one style element that Observable Plot 0.6.17 writes into a chart whose class is `plot`.
PLOT_STYLE = "sha256-+TfQir1nvDucAdvE6XUQBt4ayUjpAWkbw2kCdSfekHM="

#: Nothing but the site itself. Styles alone may stand in attributes: asv's page has them there, and so do the elements
#: that asv, flot and its axis labels make from text. No script stands in the page, so none needs a hash.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' '{PLOT_STYLE}'",
        "style-src-attr 'unsafe-inline'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)

#: What follows in <head>; load_failure.js comes first, so that it sees the others fail.
HEAD = """<meta http-equiv="Content-Security-Policy" content="{policy}">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <script src="project/load_failure.js"></script>"""

#: Of this project, in `static/`.
STYLES = ("project.css", "overview.css")

_CHARSET = re.compile(r'<meta http-equiv="Content-Type"[^>]*>')
_LOADED = re.compile(r'<(?P<tag>script|link)\b[^>]*?\b(?:src|href)="(?P<url>(?:https?:)?//[^"]+)"[^>]*>')
_INLINE = re.compile(r"<script[^>]*>\s*function js_load_failure\(\).*?</script>", re.DOTALL)
#: Deferred, scripts are fetched side by side and still run in their order: a page shows twice as soon. All but jQuery:
#: were it deferred itself, it would call asv's page ready before the scripts after it have run.
_DEFERRED = re.compile(r"<script (?=[^>]*\bsrc=)(?![^>]*/jquery-)")
_DISPLAYS = '<div id="regressions-display"'
_END_OF_HEAD = "</head>"


def rewritten(text: str, places: Mapping[str, str], pages: Sequence[Page], scripts: Sequence[str]) -> str:
    """The page of asv without other hosts and inline scripts, with the pages of this project.

    Parameters
    ----------
    text : str
        Asv's `index.html`.
    places : mapping of str to str
        What stands for each address that it loads from, under the site.
    pages : sequence of Page
        To be added to the navigation, in this order.
    scripts : sequence of str
        Under the site, to be loaded after asv's, in this order.

    Raises
    ------
    SiteError
        Asv's page is not as this was written for.
    """

    def local(match: re.Match[str]) -> str:
        url = match["url"]
        if url not in places:
            raise SiteError(
                f"asv's index.html loads {url}, which {__package__}'s vendor/manifest.json does not replace"
            )
        if match["tag"] == "link":
            return f'<link rel="stylesheet" href="{places[url]}">'
        return f'<script src="{places[url]}">'

    text = _once(_INLINE, text, lambda match: "")
    text = _LOADED.sub(local, text)
    entries: dict[str, str] = {}
    for page in pages:
        if page.before is not None:
            entry = f'<li id="nav-li-{page.name}"><a href="#{page.name}">{html.escape(page.label)}</a></li>\n        '
            entries[page.before] = entries.get(page.before, "") + entry
    displays = "".join(f'<div id="{page.name}-display" class="project-page" hidden></div>\n    ' for page in pages)
    head = "".join(f'  <link rel="stylesheet" href="project/{style}">\n  ' for style in STYLES)
    head += "".join(f'  <script src="{script}"></script>\n  ' for script in scripts)
    for mark, addition in (*entries.items(), (_DISPLAYS, displays), (_END_OF_HEAD, head)):
        # As a default, since the loop goes on.
        text = _once(re.compile(re.escape(mark)), text, lambda match, added=addition: added + match[0])  # type: ignore[misc]
    text = _DEFERRED.sub("<script defer ", text)
    text = _once(_CHARSET, text, lambda match: match[0] + "\n    " + HEAD.format(policy=POLICY))
    return text.replace("<html>", '<html lang="en">', 1)


def _once(pattern: re.Pattern[str], text: str, replacement: Callable[[re.Match[str]], str]) -> str:
    changed, count = pattern.subn(replacement, text)
    if count != 1:
        what = pattern.pattern.replace("\\", "")
        raise SiteError(f"asv's index.html has {what} {count} times, not once: another version of asv?")
    return changed
