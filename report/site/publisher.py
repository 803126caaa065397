"""asv's plugin that completes the site: `asv publish` finds the class below and calls it.

asv has copied its own `index.html` by then, and wipes the whole folder the next time.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from asv.publishing import OutputPublisher

from report.results import History, machines
from report.site import bandwidth, transactions, vendor
from report.site.page import Page, rewritten

STATIC = Path(__file__).parent / "static"

PAGES = (Page("bandwidth", "Bandwidth"), Page("transactions", "Transactions"))

#: In the order in which they need one another.
SCRIPTS = ("data.js", "view.js", "svg.js", "lines.js", "bars.js", "bandwidth.js", "transactions.js")

#: What the pages read: everything in one file, made anew by each publish.
DATA = "project.json"

#: Counted benchmarks whose values the page Transactions shows.
COUNTED = "track_counted."


class ProjectPages(OutputPublisher):  # type: ignore[misc]
    """Serves what asv's pages need from the site itself, and adds this project's pages."""

    name = "project"
    button_label = "Project pages"
    description = "Bandwidth and memory transactions"
    #: After asv's own.
    order = 100

    @classmethod
    def publish(cls, conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: Any) -> None:
        """Complete the site in `conf.html_dir`."""
        html = Path(conf.html_dir)
        places = vendor.publish(html)
        shutil.copytree(STATIC, html / "project")
        index = html / "index.html"
        scripts = [f"project/{name}" for name in SCRIPTS]
        index.write_text(rewritten(index.read_text(encoding="utf-8"), places, PAGES, scripts), encoding="utf-8")
        text = json.dumps(data(conf), separators=(",", ":"), allow_nan=False)
        (html / "project" / DATA).write_text(text, encoding="utf-8")


def data(conf: Any) -> dict[str, Any]:
    """What the pages read: the benchmarks' axes, each machine's values by commit, and the annotated sources."""
    described: dict[str, Any] = {}
    by_machine: dict[str, Any] = {}
    for name in machines(Path(conf.results_dir)):
        history = History(name, config=conf)
        shown = [one for one in history.benchmarks("time") if one in bandwidth.BENCHMARKS]
        shown += [one for one in history.benchmarks("track") if one.startswith(COUNTED)]
        for benchmark in shown:
            if benchmark not in described:
                described[benchmark] = {"axes": history.axes(benchmark), "unit": history.unit(benchmark)}
                if benchmark in bandwidth.BENCHMARKS:
                    described[benchmark] |= bandwidth.facts(history, benchmark)
        by_machine[name] = [_commit(history, commit, shown) for commit in history.commits()]
    return {"benchmarks": described, "machines": by_machine, "sources": transactions.sources()}


def _commit(history: History, commit: str, benchmarks: list[str]) -> dict[str, Any]:
    every = list(history.environments(commit).values())
    run = history.run_of(every[-1])
    values: dict[str, list[float | None]] = {}
    for benchmark in benchmarks:
        for results in every:  # one for each Python that measured the commit; the newest that has a value is shown
            found = history.values(results, benchmark)
            before = values.get(benchmark, [None] * len(found))
            merged = [old if new is None else new for old, new in zip(before, found, strict=True)]
            if any(value is not None for value in merged):
                values[benchmark] = merged
    return {
        "commit": commit,
        "date": every[-1].date,
        "gpu": run.get("gpu"),
        "driver": run.get("after", {}).get("driver"),
        "nvcc": run.get("nvcc"),
        "peak_bytes_per_second": run.get("peak_bytes_per_second"),
        "values": values,
    }
