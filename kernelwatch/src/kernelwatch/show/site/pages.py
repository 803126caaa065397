"""The project's pages: Overview, Regressions and commits wholly made here, from templates; of charts, the frame.

Every text in them may come from elsewhere: templates escape all that they are given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kernelwatch.show.site import words
from kernelwatch.show.site.changes import AT_LEAST
from kernelwatch.show.site.tiles import sparkline

#: Commits with changes that Overview tells in full, and columns of its coloured table.
TOLD, COLUMNS = 4, 24

#: Of the one style element that Observable Plot 0.6.17 writes into a chart whose class is `plot`.
PLOT_STYLE = "sha256-+TfQir1nvDucAdvE6XUQBt4ayUjpAWkbw2kCdSfekHM="

#: Nothing but the site itself, and no script in a page. Styles alone may stand in attributes: Plot writes them there.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' '{PLOT_STYLE}'",
        "style-src-attr 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)


@dataclass(frozen=True)
class Page:
    """A page in the navigation.

    Parameters
    ----------
    name : str
        Its file, without `.html`.
    label : str
        What it is called.
    scripts : tuple of str
        Where those that it needs lie, in the order in which they need one another.
    """

    name: str
    label: str
    scripts: tuple[str, ...] = ()


_SHARED = ("static/view.js", "static/choices.js")
_CHARTS = (
    "vendor/d3-7.9.0/d3.min.js", "vendor/plot-0.6.17/plot.umd.min.js",
    "static/files.js", "static/data.js", "static/charts.js", *_SHARED,
)  # fmt: skip

PAGES = (
    Page("index", "Overview"),
    Page("regressed", "Regressions", (*_SHARED, "static/regressed.js")),
    Page("commit", "Commits", ("static/forward.js",)),
    Page("bandwidth", "Bandwidth", (*_CHARTS, "static/sweep.js", "static/bandwidth.js")),
    Page("history", "History", (*_CHARTS, "static/history.js")),
    Page("transactions", "Transactions", (*_CHARTS, "static/sweep.js", "static/transactions.js")),
)


def _is_worse(one: Mapping[str, Any]) -> bool:
    return bool(one["slower"] or one["broken"] or one["failed"] or (not one["faster"] and one["more"]))


def _is_better(one: Mapping[str, Any]) -> bool:
    return bool(one["faster"] or one["repaired"] or (not one["slower"] and one["fewer"]))


#: What Regressions can show: a name, and whether a group belongs.
SHOWN: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "slower, or more": lambda one: _is_worse(one) and not one["elsewhere"],
    "slower": lambda one: one["slower"],
    "faster, or fewer": lambda one: _is_better(one) and not one["elsewhere"],
    "acknowledged": lambda one: one["acknowledged"],
    "every change": lambda one: True,
}


def write(html: Path, known: Mapping[str, Any], sources: Sequence[Any], project: str, commit_url: str | None) -> None:
    """Write the pages into the site's folder.

    Parameters
    ----------
    html : Path
        The folder.
    known : mapping
        What `overview.overview` found.
    sources : sequence
        The kernels' source with what each line costs, of `transactions.sources`.
    project : str
        What is measured.
    commit_url : str or None
        Where commits are shown besides, followed by a hash.
    """
    dates = {commit: facts["measured"] for commit, facts in known["commits"].items()}
    # Of commits of one second, as a rebase makes them, the later comes first, too.
    newest_first = sorted(known["changes"], key=lambda change: dates[change["head"]])[::-1]
    hashes = sorted(dates, key=dates.__getitem__)[::-1]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(words.filters())
    environment.globals.update(
        known, dates=dates, newest_first=newest_first, pages=PAGES, policy=POLICY, project=project, root="",
        made=int(time.time()), commit_url=commit_url, at_least=AT_LEAST, SIGNS=words.SIGNS, sparkline=sparkline,
        COLUMNS=COLUMNS, hashes=hashes,
        documented=(html / "docs").is_dir(), asvs=(html.parent / "index.html").is_file(),
    )  # fmt: skip

    scripts = {one.name: one.scripts for one in PAGES}

    def page(name: str, template: str, **facts: Any) -> None:
        path = html / f"{name}.html"
        path.parent.mkdir(exist_ok=True)
        text = environment.get_template(template).render(name=name, scripts=scripts.get(name, ()), **facts)
        path.write_text(text, encoding="utf-8")

    # What a branch changes has its own page alone until it is merged.
    published = [change for change in newest_first if not known["commits"][change["head"]]["branch"]]
    page("index", "index.html", newest_first=published, leads=list(_leads(published)), heads=list(_heads(published)))
    page("regressed", "regressed.html", rows=_rows(published), SHOWN=SHOWN)
    page("commit", "commits.html")
    for commit in known["commits"]:
        page(f"commit/{commit}", "commit.html", hash=commit, root="../")
    for one in PAGES[3:6]:
        page(one.name, "charts.html", label=one.label, sources=sources if one.name == "transactions" else [])


def _leads(newest_first: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The answers to "what got slower last, and why?", and to the same of faster: what cost, or won, most first.

    What is mixed comes behind what is not.
    """
    for word, other, size in (("slower", "faster", "cost"), ("faster", "slower", "faster")):
        changed = ((change, [group for group in words.own(change) if group[word]]) for change in newest_first)
        change, groups = next((each for each in changed if each[1]), (None, []))
        yield {"word": word, "change": change, "groups": sorted(groups, key=lambda one: (one[other] > 0, -one[size]))}


def _heads(newest_first: Sequence[Any]) -> Iterator[tuple[str, list[tuple[Any, Any]]]]:
    """The newest commits that changed something: by base, the changes and groups on all machines."""
    heads = list(dict.fromkeys(change["head"] for change in newest_first if words.own(change)))[:TOLD]
    for head in heads:
        by_base: dict[str, list[tuple[Any, Any]]] = {}
        for change in newest_first:
            for group in words.own(change) if change["head"] == head else ():
                if not group["told"]:
                    by_base.setdefault(group["base"], []).append((change, group))
        yield from by_base.items()


def _rows(newest_first: Sequence[Any]) -> list[tuple[Any, Any]]:
    """All groups of all changes, the costliest first."""
    every = [(change, group) for change in newest_first for group in change["groups"]]
    return sorted(every, key=lambda each: (not (each[1]["slower"] or each[1]["broken"]), -each[1]["cost"]))
