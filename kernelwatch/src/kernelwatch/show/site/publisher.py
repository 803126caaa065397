"""asv's plugin that completes the site: asv imports it, calls `setup`, and `asv publish` finds the class below.

asv has copied its own `index.html` by then. The next time it wipes the whole folder, unless its pages would be the
same: then ours alone are made anew.
"""

from __future__ import annotations

import functools
import importlib.resources
import itertools
import json
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.pool import ThreadPool
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest import mock

import orjson
from asv.benchmarks import Benchmarks
from asv.commands.publish import Publish
from asv.console import log
from asv.graph import Graph, GraphSet
from asv.publishing import OutputPublisher
from asv.repo import NoSuchNameError, get_repo
from asv.results import Results
from asv.util import UserError

from kernelwatch.project import ROOT
from kernelwatch.show.site import commits, configurations, data, files, kept, pages, patches, transactions, vendor
from kernelwatch.show.site.machine import Machine
from kernelwatch.show.site.overview import overview
from kernelwatch.show.site.patches import Feature, Patch
from kernelwatch.show.site.readable import readable
from kernelwatch.store.accept import checks
from kernelwatch.store.results import STORED, machines
from kernelwatch.toolchain import releases as compilers

STATIC = Path(__file__).parent / "static"

#: Where `make docs` writes the documentation: the site takes it along if it was built.
DOCUMENTATION = ROOT / "docs" / "_build" / "html"


def setup() -> None:
    """Called by asv once the plugin is imported."""
    patches.install(
        (
            Feature(
                "this project's pages",
                (Patch("asv.commands.publish:Publish.run", _completed, "cls conf range_spec pull"),),
            ),
        )
    )


def features() -> tuple[Feature, ...]:
    """Return every patch of asv while it publishes: its page and data for this site, and nothing done twice."""
    once = {
        "asv.plugins.git:Git.get_hashes_from_range": "self range_spec",  # git is asked for every regression
        "asv.graph:Graph.get_data": "source 07d02780",  # by steps, files and summaries; nobody changes it
        "asv.graph:Graph.get_steps": "source 315eb34c",  # the list asks for those of a whole graph at each of its lines
    }
    return (
        Feature(
            "results of one compiler, read once",
            (
                Patch("asv.commands.publish:Publish.iter_results", _of_one_compiler, "conf repo range_spec"),
                Patch("asv.plugins.regressions:iter_results", _read_before, "results"),
            ),
        ),
        Feature("nothing asked twice", tuple(Patch(where, functools.cache, said) for where, said in once.items())),
        Feature(
            "steps searched once",
            (
                Patch("asv.graph:GraphSet.detect_steps", _on_all_cores, "source 8cfc41b2"),
                Patch("asv.graph:Graph.detect_steps", _kept_steps, "source 3870449a"),
                Patch("asv.graph:_compute_graph_steps", _once_of_equal, "data reraise"),
                Patch("asv.util:get_multiprocessing_pool", lambda _: lambda *_: ThreadPool(1), "parallel"),  # for steps
            ),
        ),
        Feature(
            "pages that open as files", (Patch("asv.util:write_json", lambda _: files.write_json, "path data compact"),)
        ),
    )


#: In the site's folder: the digest of all that asv's own pages were made from. A torn site has none.
MADE_FROM = "asv.sha256"

#: What asv's pages do not show of a result: a run that took over each number changes nothing else.
_UNSHOWN = ("started_at", "duration", "samples", "profile")


def _once_of_equal(search: Any) -> Any:
    found: dict[tuple[Any, ...], Any] = {}

    @functools.wraps(search)
    def wrapped(data: list[tuple[Any, ...]], reraise: bool = True) -> Any:
        """Search equal series once."""
        series = tuple(data)
        if series not in found:
            found[series] = search(data, reraise)
        return found[series]

    return wrapped


def _kept_steps(detect: Any) -> Any:
    @functools.wraps(detect)
    def wrapped(self: Graph, pool: Any = None) -> None:
        """Search the steps of a graph, unless those of equal data are kept."""

        def make() -> Any:
            detect(self)
            return self._steps

        if self._steps is None:
            self._steps = kept.once([kept.code(), self.scalar_series, self.n_series, self.get_data()], make)

    return wrapped


def _on_all_cores(_: Any) -> Any:
    def detect_steps(self: GraphSet, pool: Any = None, dots: Any = None) -> None:
        """Search the steps of all graphs, a part on each core: other processes keep theirs, and this one finds them."""
        graphs, cores = [graph for _, graph in self], len(os.sched_getaffinity(0))

        def search(first: int) -> None:
            for graph in graphs[first::cores]:
                graph.detect_steps()

        with ExitStack() as beside:
            for first in range(1, cores):
                beside.enter_context(_beside(functools.partial(search, first)))
            search(0)
        for graph in graphs:
            graph.detect_steps()

    return detect_steps


def _completed(run: Any) -> Any:
    @functools.wraps(run)
    def wrapped(cls: type[Publish], conf: Any, range_spec: Any = None, pull: bool = True) -> None:
        """Publish what can be read, with scripts beside asv's data; and do nothing twice that takes long."""
        require_branches(conf)
        if unkept := kept.problem():
            log.warning(unkept)
        with (
            readable(Path(conf.results_dir)) as results,
            mock.patch.object(conf, STORED, conf.results_dir, create=True),
            mock.patch.object(conf, "results_dir", str(results)),
            mock.patch.object(conf, "show_commit_url", commits.link(conf.show_commit_url)),
        ):
            repo, made_from = get_repo(conf), Path(conf.html_dir, MADE_FROM)
            if pull:
                repo.pull()
            now = _of_asv(conf, repo, range_spec)
            if made_from.exists() and made_from.read_text(encoding="utf-8") == now:
                log.info("asv's pages show what they showed; the others are made anew")
                ProjectPages.publish(conf, repo, Benchmarks.load(conf), None, None)
            else:
                with patches.meanwhile(features()), _beside(lambda: tell(conf, repo, Benchmarks.load(conf))) as telling:
                    _telling[:] = [telling]
                    _read.clear()
                    try:
                        run(cls, conf, range_spec, pull=False)
                    finally:
                        _read.clear()
                        _telling.clear()
                made_from.write_text(now, encoding="utf-8")
                kept.tidy()

    return wrapped


#: Works out what this project's pages tell, while asv makes its own.
_telling: list[BaseProcess] = []


@contextmanager
def _beside(work: Callable[[], object]) -> Iterator[BaseProcess]:
    """Have another process do some work meanwhile: it keeps what takes long, so that who asks for it finds it."""

    def do() -> None:
        with suppress(Exception):  # whoever asks meets it again
            work()

    process = multiprocessing.get_context("fork").Process(target=do, daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.join()


def _of_asv(conf: Any, repo: Any, range_spec: Any) -> str:
    """The digest of what asv's pages are made from: code, configuration, branches and tags, and what was measured."""
    configured = {name: value for name, value in vars(conf).items() if name not in ("results_dir", "html_dir")}
    branches = [repo.get_hash_from_name(repo.get_branch_name(branch)) for branch in conf.branches]
    results = Path(conf.results_dir)
    stored = [
        (str(path.relative_to(results)), _of_shown(path.read_bytes())) for path in sorted(results.glob("*/*.json"))
    ]
    listed = kept.of_file(results / checks.SUITE)
    parts = [kept.code(), repr(sorted(configured.items())), branches, sorted(repo.get_tags().items()), range_spec]
    return kept.digest(orjson.dumps([*parts, listed, stored]))


def _of_shown(content: bytes) -> str:
    """The digest of what asv's pages show of a file of results; worked out once."""

    def make() -> str:
        document = json.loads(content)
        shown = [column not in _UNSHOWN for column in document.get("result_columns", ())]
        rows = document.pop("results", {}).items()
        document["durations"] = [(name, list(itertools.compress(row or (), shown))) for name, row in rows]
        return kept.digest(json.dumps(document).encode())

    return str(kept.once(["shown", _UNSHOWN, kept.digest(content)], make))


#: The results that are published, without samples, which asv's pages do not show; while a site is made.
_read: list[Results] = []


def _of_one_compiler(iter_results: Any) -> Any:
    @functools.wraps(iter_results)
    def wrapped(*args: Any, **kwargs: Any) -> Iterator[Results]:
        """Leave out what other compilers than the machine's own made: its graphs are as if there were no others.

        asv asks twice, and a third time for its feed. The results are read once.
        """
        for results in iter_results(*args, **kwargs) if not _read else ():
            results._samples.clear()
            _read.append(results)
        by_machine: dict[str, list[str | None]] = {}
        for results in _read:
            by_machine.setdefault(results.params["machine"], []).append(compilers.of_results(results.env_vars))
        own = {name: compilers.own(names) for name, names in by_machine.items()}
        yield from (each for each in _read if compilers.of_results(each.env_vars) == own[each.params["machine"]])

    return wrapped


def _read_before(iter_results: Any) -> Any:
    return functools.wraps(iter_results)(lambda results: iter(_read) if _read else iter_results(results))


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


def tell(conf: Any, repo: Any, benchmarks: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return what git knows of the measured commits, what is told of each machine, and what of each benchmark."""
    every = [Machine(name, conf) for name in machines(Path(conf.results_dir))]
    known = commits.described(repo, sorted(set().union(*(each.commits() for each in every))))
    ids = data.numbered(name for name, each in benchmarks.items() if each["type"] in ("time", "track"))
    told = {each.name: each.told(repo, known, ids) for each in every}
    described = kept.once(
        [kept.code(), kept.of_file(Path(conf.results_dir, checks.SUITE))],
        lambda: {name: {"id": ids[name], **configurations.described(every[0].history, name)} for name in ids},
    )
    return known, told, described if every else {}


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
        asv_page = importlib.resources.files("asv").joinpath("www", "index.html").read_text(encoding="utf-8")
        (html / "asv.html").write_text(vendor.rewritten(asv_page, pages.POLICY), encoding="utf-8")
        for folder, target in ((STATIC, "project"), (vendor.FOLDER, "vendor"), (DOCUMENTATION, "docs")):
            shutil.rmtree(html / target, ignore_errors=True)
            if folder.is_dir():
                shutil.copytree(folder, html / target, ignore=shutil.ignore_patterns("manifest.json"))
        for process in _telling:
            process.join()
        known, told, described = tell(conf, repo, benchmarks)
        data.write(html / "project" / "data", described, told)
        sources = transactions.sources(Path(conf.results_dir))
        url = None if conf.show_commit_url == commits.PAGE else conf.show_commit_url
        pages.write(html, overview(told, known), told, sources, conf.project, url)
