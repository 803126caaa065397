"""asv's plugin that completes the site: asv imports it, calls `setup`, and `asv publish` finds the class below.

asv has copied its own `index.html` by then, and wipes the whole folder the next time.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import orjson
from asv import graph, util
from asv.commands.publish import Publish
from asv.graph import Graph
from asv.plugins.git import Git
from asv.publishing import OutputPublisher
from asv.repo import NoSuchNameError, get_repo
from asv.results import Results
from asv.util import UserError

from kernelwatch.project import ROOT
from kernelwatch.show.site import commits, data, files, kept, pages, transactions, vendor
from kernelwatch.show.site.overview import overview
from kernelwatch.show.site.page import rewritten
from kernelwatch.show.site.readable import readable
from kernelwatch.store.results import STORED, History, machines
from kernelwatch.toolchain import releases as compilers

STATIC = Path(__file__).parent / "static"

#: Where `make docs` writes the documentation: the site takes it along if it was built.
DOCUMENTATION = ROOT / "docs" / "_build" / "html"


def setup() -> None:
    """Called by asv once the plugin is imported. asv has no hook around publishing: its class method is wrapped."""
    Publish.run = classmethod(_completed(Publish.run.__func__))


def _completed(run: Any) -> Any:
    @functools.wraps(run)
    def wrapped(cls: type[Publish], conf: Any, *args: Any, **kwargs: Any) -> Any:
        """Publish what can be read, with scripts beside asv's data; and ask nothing twice that takes long.

        asv has no hook for any, so functions of it are replaced meanwhile (it is pinned). It asks git for every
        regression anew, and searches steps in every series, though most are alike, or those of the last site.
        """
        require_branches(conf)
        between, detect = functools.cache(Git.get_hashes_from_range), Graph.detect_steps
        one = mock.patch.object(Publish, "iter_results", staticmethod(_of_one_compiler(Publish.iter_results)))
        with (
            kept.steps() as known,
            one,
            mock.patch.object(Git, "get_hashes_from_range", between),
            mock.patch.object(Graph, "detect_steps", lambda self, pool=None: detect(self)),
            # One process has found them all: asv's list asks for those of a whole graph at each of its lines.
            mock.patch.object(Graph, "get_steps", functools.cache(Graph.get_steps)),
            mock.patch.object(graph, "_compute_graph_steps", _searched_once(graph._compute_graph_steps, known)),
            mock.patch.object(util, "write_json", files.write_json),
            readable(Path(conf.results_dir)) as results,
            mock.patch.object(conf, STORED, conf.results_dir, create=True),
            mock.patch.object(conf, "results_dir", str(results)),
            mock.patch.object(conf, "show_commit_url", commits.link(conf.show_commit_url)),
        ):
            done = run(cls, conf, *args, **kwargs)
        kept.tidy()
        return done

    return wrapped


def _searched_once(search: Any, found: dict[str, Any]) -> Any:
    """Search the steps of equal series once; `found` has those of the last site by the digest of their series."""
    before = dict(found)
    found.clear()

    @functools.wraps(search)
    def wrapped(data: Any, reraise: bool = True) -> Any:
        name = hashlib.sha256(orjson.dumps(data)).hexdigest()
        if name not in found:
            found[name] = [tuple(step) for step in before[name]] if name in before else search(data, reraise)
        return list(found[name])

    return wrapped


def _without_samples(results: Results) -> Results:
    results._samples.clear()
    return results


def _of_one_compiler(iter_results: Any) -> Any:
    every: list[Results] = []

    @functools.wraps(iter_results)
    def wrapped(*args: Any, **kwargs: Any) -> Iterator[Results]:
        """Leave out what other compilers than the machine's own made: its graphs are as if there were no others.

        asv asks twice. The results are read once, and without samples, which asv's pages do not show.
        """
        if not every:
            every.extend(map(_without_samples, iter_results(*args, **kwargs)))
        by_machine: dict[str, list[str | None]] = {}
        for results in every:
            by_machine.setdefault(results.params["machine"], []).append(compilers.of_results(results.env_vars))
        own = {name: compilers.own(names) for name, names in by_machine.items()}
        yield from (each for each in every if compilers.of_results(each.env_vars) == own[each.params["machine"]])

    return wrapped


def require_branches(conf: Any) -> None:
    """Make sure that this clone has the branches whose history is published.

    Raises
    ------
    UserError
        It lacks one, as the checkout of a pull request does.
    """
    repo = get_repo(conf)
    for branch in conf.branches:
        name = repo.get_branch_name(branch)
        try:
            repo.get_hash_from_name(name)
        except NoSuchNameError:
            raise UserError(
                f"asv.conf.json asks for the history of branch {name!r}, which this clone does not have; "
                f"run: git fetch origin {name}:{name}"
            ) from None


class ProjectPages(OutputPublisher):  # type: ignore[misc]
    """Serves what asv's pages need from the site itself, and adds this project's pages."""

    name = "project"
    button_label = "Project pages"
    description = "Overview, bandwidth, memory transactions, resources and noise"
    #: After asv's own.
    order = 100

    @classmethod
    def publish(cls, conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: Any) -> None:
        """Complete the site in `conf.html_dir`."""
        html = Path(conf.html_dir)
        shutil.copytree(STATIC, html / "project")
        asv_page = (html / "index.html").read_text(encoding="utf-8")
        (html / "asv.html").write_text(rewritten(asv_page, vendor.publish(html)), encoding="utf-8")
        if DOCUMENTATION.is_dir():
            shutil.copytree(DOCUMENTATION, html / "docs")
        histories = [History(name, config=conf) for name in machines(Path(conf.results_dir))]
        data.write(html / "project" / "data", histories)
        sources = transactions.sources(Path(conf.results_dir))
        url = None if conf.show_commit_url == commits.PAGE else conf.show_commit_url
        pages.write(html, overview(histories, repo), sources, conf.project, url)
