"""The project's pages: Overview and commits wholly made here, from templates; of charts and sources, the frame.

Every text in them may come from elsewhere: templates escape all that they are given.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kernelwatch.review.consecutive import failing
from kernelwatch.show.site import overview, words
from kernelwatch.show.site.changes import AT_LEAST, explain
from kernelwatch.show.site.overview import Shown

#: Commits with changes that Overview tells of.
TOLD = 8

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
    question : str
        What it answers.
    scripts : tuple of str
        Where those that it needs lie, in the order in which they need one another.
    """

    name: str
    label: str
    question: str
    scripts: tuple[str, ...] = ()


_SHARED = ("static/view.js", "static/choices.js")
_CHARTS = (
    "vendor/d3-7.9.0/d3.min.js", "vendor/plot-0.6.17/plot.umd.min.js",
    "static/files.js", "static/data.js", "static/charts.js", *_SHARED,
)  # fmt: skip

PAGES = (
    Page("index", "Overview", "How fast is each kernel, and what changed?"),
    Page("commit", "Commits", "What did each commit change?", (*_SHARED, "static/commits.js")),
    Page("bandwidth", "Bandwidth", "How fast is each kernel, by size, dtype and flags?",
         (*_CHARTS, "static/sweep.js", "static/bandwidth.js")),
    Page("history", "History", "How did a number change over the commits?", (*_CHARTS, "static/history.js")),
    Page("transactions", "Transactions", "What does each kernel move, and which line costs it?",
         (*_CHARTS, "static/sweep.js", "static/transactions.js")),
)  # fmt: skip


@dataclass(frozen=True)
class Site:
    """The pages of some machines.

    Parameters
    ----------
    html : Path
        The folder of the pages.
    project : str
        What is measured.
    commit_url : str or None
        Where commits are shown besides, followed by a hash.
    machines : mapping
        The machines by name.
    known : mapping
        The measured commits that git knows, as `commits.described` has them.
    sources : sequence
        The kernels' source with what each line costs, of `transactions.sources`.
    has_asvs : bool
        Whether asv's own pages lie beside these.
    """

    html: Path
    project: str
    commit_url: str | None
    machines: Mapping[str, Shown]
    known: Mapping[str, Mapping[str, Any]]
    sources: Sequence[Any]
    has_asvs: bool

    @cached_property
    def changes(self) -> list[dict[str, Any]]:
        """All changes of all machines."""
        found = [dict(change) for each in self.machines.values() for change in each.changes]
        explain(found)
        return found

    @cached_property
    def commits(self) -> dict[str, dict[str, Any]]:
        """The facts of all measured commits, newest first; of commits of one second, the later comes first, too."""
        graphs = [each.history.graph for each in self.machines.values()]
        dates = {commit: date for each in self.machines.values() for commit, date in each.history.dates().items()}
        every = {commit: graph.branches[commit] for graph in graphs for commit in graph.commits}
        newest_first = sorted(every, key=dates.__getitem__)[::-1]
        by_head: dict[str, list[Any]] = {commit: [] for commit in newest_first}
        for change in self.changes:
            by_head[change["head"]].append(change)
        return {
            commit: {
                "measured": dates[commit],
                "branch": every[commit],
                "changes": sorted(by_head[commit], key=lambda change: -change["timed"]),
                # With the kernels that fail where nothing is compared.
                "machines": {
                    name: [] if any(each.history.graph.ancestors(commit)) else failing(each.history, commit)
                    for name, each in self.machines.items()
                    if commit in each.values
                },
                **self.known.get(commit, {}),
            }
            for commit in newest_first
        }

    def write(self) -> None:
        """Write all pages into the folder."""
        environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters.update(words.filters())
        environment.tests["deciding"] = words.decides
        environment.globals.update(
            pages=PAGES, policy=POLICY, project=self.project, commits=self.commits, commit_url=self.commit_url,
            at_least=AT_LEAST, SIGNS=words.SIGNS, made=int(time.time()), root="", asvs=self.has_asvs,
            documented=(self.html / "docs").is_dir(), machines=words.short_names(self.machines),
            counted={each["kernel"] for each in self.sources},
        )  # fmt: skip

        def write(name: str, template: str, page: Page, **facts: Any) -> None:
            path = self.html / f"{name}.html"
            path.parent.mkdir(exist_ok=True)
            path.write_text(environment.get_template(template).render(page=page, **facts), encoding="utf-8")

        for page in PAGES:
            template = {"index": "index.html", "commit": "commits.html"}.get(page.name, "charts.html")
            write(page.name, template, page, **self._facts(page))
        for commit in self.commits:
            write(f"commit/{commit}", "commit.html", Page("", "", ""), hash=commit, root="../")

    def _facts(self, page: Page) -> dict[str, Any]:
        if page.name == "transactions":
            return {"sources": self.sources}
        if page.name != "index":
            return {"sources": []}
        published = (each for each in self.commits.items() if not each[1]["branch"])
        lately = [commit for commit, facts in published if words.changed(facts["changes"])]
        newest = {name: each.history.graph.line[-1:] for name, each in self.machines.items()}
        return {"rows": list(overview.rows(self.machines)), "lately": lately[:TOLD], "newest": newest}
