"""How long publishing takes, where that time goes, and how soon a page shows: `python -m experiments.publish`.

On results that nobody measured (experiments/synthetic.py), with as many samples as the suite records.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FunctionType
from typing import Any
from unittest import mock

from asv.commands.publish import Publish
from asv.config import Config
from asv.graph import GraphSet
from asv.plugins.regressions import Regressions
from asv.plugins.summarygrid import SummaryGrid
from asv.results import Results
from tabulate import tabulate

from benchmarks.timed import SAMPLES
from experiments import synthetic
from experiments.spent import timed
from report.results import ROOT
from report.site import files, publisher, reading
from tests.site import browser

#: What is timed: where it lives, its name, and what it does. What asv does between these is in "all" alone; where asv
#: reads results itself, that is in "asv makes the regressions" too.
PARTS: list[tuple[Any, str, str]] = [
    (reading, "read", "this project reads results, on all cores"),
    (Results, "load", "asv reads results"),
    (GraphSet, "detect_steps", "asv detects steps, in a pool of processes"),
    (GraphSet, "save", "asv writes graphs"),
    (SummaryGrid, "publish", "asv makes the grid"),
    (Regressions, "publish", "asv makes the regressions"),
    (publisher.ProjectPages, "publish", "this project's pages"),
    (files, "beside", "this project's scripts beside asv's files"),
]


def main(words: Sequence[str] | None = None) -> None:
    """Make the results, publish them both ways, and print what it took."""
    parser = argparse.ArgumentParser("python -m experiments.publish", description=__doc__)
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--series", type=int, default=500)
    parser.add_argument("--samples", type=int, default=2 * SAMPLES, help="of each configuration on each commit")
    chosen = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "repo").mkdir()
        commits = synthetic.history(root / "repo", chosen.commits)
        synthetic.results(root / "results", commits, chosen.series, chosen.samples)
        print(
            f"{chosen.commits} commits x {chosen.series} series x {chosen.samples} samples, "
            f"{_megabytes(root / 'results')} MB of results, {os.cpu_count()} cores\n"
        )
        run = Publish.run
        publisher.setup()
        ways = {"without reading once": run, "as published": Publish.run}
        found = {way: _publish(root, ways[way]) for way in ways}
        rows = [[part, *(f"{found[way].get(part, 0.0):.1f}" for way in ways)] for part in next(iter(found.values()))]
        print(tabulate(rows, headers=["seconds", *ways], tablefmt="github", disable_numparse=True))
        print(f"\n{_megabytes(root / 'html')} MB of site; milliseconds until a page shows, from a file:")
        print(_first_pages(root / "html"))


def _publish(root: Path, run: Callable[..., Any]) -> dict[str, float]:
    """Seconds in all, and by part."""
    config = Config.load(str(ROOT / "asv.conf.json"))
    config.repo, config.results_dir, config.html_dir = (str(root / name) for name in ("repo", "results", "html"))
    spent = dict.fromkeys(["all", "of all cores together", *(part for _, _, part in PARTS)], 0.0)
    with ExitStack() as stack:
        for owner, name, part in PARTS:
            function, bound = getattr(owner, name), not isinstance(vars(owner)[name], FunctionType)
            noted = timed(function, spent, part)
            stack.enter_context(mock.patch.object(owner, name, staticmethod(noted) if bound else noted))
        before = sum(os.times()[:4])
        timed(run, spent, "all")(config, pull=False)
        spent["of all cores together"] = sum(os.times()[:4]) - before
    return spent


def _first_pages(html: Path) -> str:
    """What `first_page.js` says, or why it cannot."""
    if why := browser.missing():
        return why
    command = ["node", str(browser.HERE / "first_page.js"), str(html)]
    environment = {**os.environ, "CHROMIUM": str(browser.CHROMIUM)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return ", ".join(f"{page} {milliseconds:.0f}" for page, milliseconds in json.loads(done.stdout).items())


def _megabytes(folder: Path) -> int:
    return round(sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6)


if __name__ == "__main__":
    main()
