"""The project's pages, in `html/watch/`: `kernelwatch site` makes them alone, `asv publish` beside its own."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from asv.benchmarks import Benchmarks

from kernelwatch.config.project_root import ROOT
from kernelwatch.show.site import commits, configurations, data, pages, transactions
from kernelwatch.show.site.changes import changes
from kernelwatch.show.site.overview import Shown
from kernelwatch.store import folders
from kernelwatch.store.results import History

#: The pages' folder in asv's `html_dir`.
FOLDER = "watch"

#: What of this package is copied there.
_COPIED = ("static", "vendor")

#: Where `make docs` writes the documentation: the site takes it along if it was built.
DOCUMENTATION = ROOT / "docs" / "_build" / "html"


def write(conf: Any, repo: Any) -> Path:
    """Write all pages anew, and return their folder.

    Parameters
    ----------
    conf : asv.config.Config
        Says where results are, and where the site is written.
    repo : asv.plugins.git.Git
        The repository whose commits were measured.

    Raises
    ------
    FileExistsError
        The folder of the pages is a link.
    """
    conf = copy.copy(conf)
    conf.results_dir = str(folders.results_folder(Path(conf.results_dir)))
    folder = Path(conf.html_dir, FOLDER)
    if folder.is_symlink():  # all below it is removed first, and that may be anything
        raise FileExistsError(f"{folder} is a link, and its target would be removed; remove the link")
    shutil.rmtree(folder, ignore_errors=True)
    for name in _COPIED:
        shutil.copytree(Path(__file__).parent / name, folder / name)
    if DOCUMENTATION.is_dir():
        shutil.copytree(DOCUMENTATION, folder / "docs")
    results = Path(conf.results_dir)
    ids = data.numbered(name for name, each in Benchmarks.load(conf).items() if each["type"] in ("time", "track"))
    every = {name: _shown(History(name, ROOT, config=conf), repo, ids) for name in folders.list_machines(results)}
    shown = dict(sorted(every.items(), key=lambda each: -each[1].times))  # where there are times, a reader looks first
    histories = [each.history for each in shown.values()]
    described = {
        name: {"id": number, **configurations.described(histories[0], name)}
        for name, number in ids.items()
        if histories
    }
    data.write(folder / "data", described, shown)
    pages.write(
        folder,
        shown,
        commits.described(repo, sorted({commit for history in histories for commit in history.list_commits()})),
        transactions.sources(results),
        {name: describe_column(each.history, repo) for name, each in shown.items()},
        project=conf.project,
        commit_url=conf.show_commit_url if conf.show_commit_url.startswith("http") else None,
        has_asvs=Path(conf.html_dir, "index.html").is_file(),
    )
    return folder


def describe_column(history: History, repo: Any) -> dict[str, Any]:
    """Return the day and the GPU of a machine's newest published measurement, and its distance from HEAD."""
    newest = history.graph.line[-1:]
    results = history.find_commit(newest[0]) if newest else None
    if results is None:
        return {"day": "", "gpu": "", "distance": None}
    run = history.find_last_timed_run(results)
    uuid = (run.get("before") or {}).get("uuid") or ""
    return {
        "day": (run.get("started") or "")[:10],
        "gpu": " ".join(filter(None, [run.get("gpu"), uuid.removeprefix("GPU-")[:8]])),
        "distance": commits.measure_distance(repo, newest[0]),
    }


def _shown(history: History, repo: Any, benchmarks: Iterable[str]) -> Shown:
    return Shown(history, data.values(history, list(benchmarks)), changes(history, repo, ROOT))
