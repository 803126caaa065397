"""The project's pages, rendered from templates, and their scripts, which add the charts.

Texts may come from other people's results, so templates escape all of them.
"""

import inspect
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemBytecodeCache, FunctionLoader, StrictUndefined

from kernelwatch.config import cache_dir
from kernelwatch.review.groups import MIN_LISTED_CHANGE
from kernelwatch.show.site import overview, words
from kernelwatch.show.site.overview import ShownMachine
from kernelwatch.show.site.site_folder import SiteFolder
from ptxcount.util.grammar import count_noun

#: Maximum number of commits with changes on Overview.
MAX_CHANGES = 8

#: Maximum number of entries in the feed of regressions.
_MAX_ENTRIES = 30

#: Characters that XML 1.0 forbids, even escaped.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: Hash of the style element that Observable Plot 0.6.17 adds to a chart of class `plot`.
PLOT_STYLE = "sha256-+TfQir1nvDucAdvE6XUQBt4ayUjpAWkbw2kCdSfekHM="

#: Content security policy: only the site's own files and embedded images, no inline scripts. Plot needs styles in
#: attributes.
POLICY = (
    f"default-src 'none'; script-src 'self'; style-src 'self' '{PLOT_STYLE}'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)


class Page(NamedTuple):
    """A page: its file's stem, template, label and heading, and the modules of `static` that its script consists of."""

    name: str
    template: str
    label: str
    heading: str
    modules: tuple[str, ...] = ()

    @property
    def scripts(self) -> list[str]:
        """The scripts that the page loads. All modules are one script, because each request costs time."""
        own = [f"scripts/{self.name}.js"] if self.modules else []
        return [_PLOT, *own] if "charts" in self.modules else own


#: The script of Observable Plot, with the parts of d3 that the charts use.
_PLOT = "vendor/plot-0.6.17/plot.min.js"

_SHARED = ("data", "view", "choices")
_CHARTS = (*_SHARED, "charts")

PAGES = (
    Page("index", "index.html", "Overview", "How fast is each kernel, and what changed?"),
    Page("commit", "commits.html", "Commits", "What did each commit change?", ("view", "choices", "commits")),
    Page("compare", "charts.html", "Compare", "What differs between two commits?", (*_SHARED, "heat", "compare")),
    Page("bandwidth", "charts.html", "Bandwidth", "How fast is each kernel, by size, dtype and flags?",
         (*_CHARTS, "sweep", "fetch", "bandwidth")),
    Page("history", "charts.html", "History", "How did a number change over the commits?", (*_CHARTS, "history")),
    Page("transactions", "charts.html", "Transactions", "What does each kernel move, and which line costs it?",
         (*_CHARTS, "sweep", "transactions")),
)  # fmt: skip

#: The page of a single commit; these pages are in a folder of their own.
COMMIT_PAGE = Page("single-commit", "commit.html", "", "", (*_SHARED, "heat", "commit"))


def write_pages(
    site: SiteFolder, machines: Mapping[str, ShownMachine], git_facts: Mapping[str, Any], sources: Sequence[Any],
    columns: Mapping[str, Any], **facts: Any,
) -> None:  # fmt: skip
    """Write all pages.

    Parameters
    ----------
    site : SiteFolder
        The folder.
    machines : mapping
        The machines by name.
    git_facts : mapping
        Git's facts about the measured commits, from `commits.describe_commits`.
    sources : sequence
        The kernels' annotated sources, from `annotated_sources.list_sources`.
    columns : mapping
        Machine -> header of its column on Overview, from `publisher.describe_column`.
    **facts
        Further values for the templates: `project`, `commit_url`, `has_asv_pages`, `has_documentation`.
    """
    _write_scripts(site)
    commits = _describe_commits(machines, git_facts)
    published = [
        commit
        for commit, fields in commits.items()
        if not fields["branch"] and words.select_worst_groups(fields["changes"])
    ]
    environment = _make_environment()
    environment.globals.update(
        facts, pages=PAGES, policy=POLICY, commits=commits, at_least=MIN_LISTED_CHANGE, SIGNS=words.SIGNS,
        site_version=site.version, machines=words.shorten_machines(machines), sources=sources,
        rows=list(overview.iter_rows(machines)), recent_changes=published[:MAX_CHANGES], root="",
        newest={name: machine.history.graph.line[-1:] for name, machine in machines.items()}, columns=columns,
    )  # fmt: skip
    regressions = [commit for commit in published if words.list_regressions(commits[commit]["changes"])]
    feed = environment.get_template("regressions.xml").render(regressions=regressions[:_MAX_ENTRIES])
    site.write_text("regressions.xml", _NO_XML.sub(" ", feed))
    for page in PAGES:
        site.write_text(f"{page.name}.html", environment.get_template(page.template).render(page=page))
    template = environment.get_template(COMMIT_PAGE.template)
    for commit, fields in commits.items():
        has_heat_maps = any(change["compared"] for change in fields["changes"])
        page = COMMIT_PAGE if has_heat_maps else COMMIT_PAGE._replace(modules=())
        site.write_text(f"commit/{commit}.html", template.render(page=page, hash=commit, root="../"))


def _write_scripts(site: SiteFolder) -> None:
    for page in (*PAGES, COMMIT_PAGE):
        modules = (Path(__file__).parent / "static" / f"{module}.js" for module in page.modules)
        if script := "".join(_strip_script(module.read_text(encoding="utf-8")) for module in modules):
            site.write_text(f"scripts/{page.name}.js", script)


def _make_environment() -> Environment:
    """Return Jinja's environment. Its filters are the functions of `words`, `count_noun` and `quote_word`."""
    cache = cache_dir.cache_folder("templates")
    environment = Environment(
        loader=FunctionLoader(_load_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        bytecode_cache=None if cache_dir.find_problem(cache) else FileSystemBytecodeCache(str(cache)),
    )
    functions = inspect.getmembers(words, inspect.isfunction)
    environment.filters.update(
        (name, function) for name, function in functions if function.__module__ == words.__name__
    )
    environment.filters |= {"count_noun": count_noun, "quote_word": shlex.quote}
    environment.tests["deciding"] = words.is_deciding
    return environment


def _strip_script(text: str) -> str:
    """Return a script without indentation and comment lines. The scripts have no multi-line strings."""
    return re.sub(r"^ *(//[^\n]*\n|/\*.*?\*/\n|\n)|^ +", "", text, flags=re.M | re.S)


def _load_template(name: str) -> str:
    """Return the text of a template without indentation."""
    return re.sub(r"\n\s+", "\n", (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8"))


def _describe_commits(machines: Mapping[str, ShownMachine], git_facts: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    changes = [change for machine in machines.values() for change in machine.changes]
    changes.sort(key=lambda change: -change["timed"])
    dates = {commit: date for machine in machines.values() for commit, date in machine.history.commit_dates().items()}
    graphs = [machine.history.graph for machine in machines.values()]
    branches = {commit: graph.branches[commit] for graph in graphs for commit in graph.commits}
    return {
        commit: {
            "measured": dates[commit],
            "branch": branches[commit],
            "changes": [change for change in changes if change["head"] == commit],
            # The machines that measured the commit, with its failing kernels if there is no ancestor to compare with.
            "machines": {
                name: machine.commits[commit].failing for name, machine in machines.items() if commit in machine.commits
            },
            **git_facts.get(commit, {}),
        }
        for commit in sorted(branches, key=dates.__getitem__)[::-1]  # a graph's later commits first, at equal dates
    }
