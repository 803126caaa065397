"""The project's pages, in `html/watch/`: `kernelwatch site` makes them alone, `asv publish` beside its own."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.console import log
from asv.repo import get_repo

from kernelwatch.command import without_traceback
from kernelwatch.project import ROOT
from kernelwatch.runner.plugin import WatchPages  # noqa: F401 -- older configurations of asv name this module as a plugin
from kernelwatch.show.site import commits, configurations, data, kept, pages, transactions
from kernelwatch.show.site.machine import Machine
from kernelwatch.show.site.overview import overview
from kernelwatch.store import folders
from kernelwatch.store.reading import SUITE

#: The pages' folder in asv's `html_dir`.
FOLDER = "watch"

#: What of this package is copied there.
_COPIED = ("static", "vendor")

#: Where `make docs` writes the documentation: the site takes it along if it was built.
DOCUMENTATION = ROOT / "docs" / "_build" / "html"


def write_all(conf: Any, repo: Any) -> Path:
    """Write all pages anew, and return their folder."""
    with mock.patch.object(conf, "results_dir", str(folders.results(Path(conf.results_dir)))):
        return write(conf, repo, Benchmarks.load(conf))


def write(conf: Any, repo: Any, benchmarks: Any) -> Path:
    """Write all pages anew, and return their folder.

    Parameters
    ----------
    conf : asv.config.Config
        Says where results are, and where the site is written.
    repo : asv.plugins.git.Git
        The repository whose commits were measured.
    benchmarks : mapping
        Name -> facts, as asv's `benchmarks.json` has them.
    """
    if unkept := kept.problem():
        log.warning(unkept)
    folder = Path(conf.html_dir, FOLDER)
    shutil.rmtree(folder, ignore_errors=True)
    for name in _COPIED:
        shutil.copytree(Path(__file__).parent / name, folder / name)
    if DOCUMENTATION.is_dir():
        shutil.copytree(DOCUMENTATION, folder / "docs")
    known, told, described = tell(conf, repo, benchmarks)
    data.write(folder / "data", described, told)
    sources = transactions.sources(Path(conf.results_dir))
    url = conf.show_commit_url if conf.show_commit_url.startswith("http") else None
    pages.write(folder, overview(told, known), sources, conf.project, url)
    kept.tidy()
    return folder


def tell(conf: Any, repo: Any, benchmarks: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return what git knows of the measured commits, what is told of each machine, and what of each benchmark."""
    every = [Machine(name, conf) for name in folders.machines(Path(conf.results_dir))]
    known = commits.described(repo, sorted(set().union(*(each.commits() for each in every))))
    ids = data.numbered(name for name, each in benchmarks.items() if each["type"] in ("time", "track"))
    told = {each.name: each.told(repo, known, ids) for each in every}
    described = kept.once(
        [kept.code(), kept.of_file(Path(conf.results_dir, SUITE))],
        lambda: {name: {"id": ids[name], **configurations.described(every[0].history, name)} for name in ids},
    )
    return known, told, described if every else {}


@without_traceback
def main(words: Sequence[str] | None = None) -> int:
    """Write the project's pages alone, without asv's, and say where they are."""
    argparse.ArgumentParser("kernelwatch site", description=main.__doc__).parse_args(words)
    os.chdir(ROOT)  # asv's configuration names folders relative to its own
    conf = Config.load("asv.conf.json")
    print(f"Written: {write_all(conf, get_repo(conf))}/index.html")
    return 0
