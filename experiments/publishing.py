"""How long it takes to publish when one commit is new: `python -m experiments.publishing`.

Of two histories: this repository's, and a made-up one of three machines, two with every time of the suite and one with
as many counted numbers. All but the newest results are published first, which fills the cache; then with these.

The made-up history's first publication has stand-ins for the reviews, since there are thousands: they are made at half
a second each, once. The new commit's review is real.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copytree
from typing import Any
from unittest import mock

import numpy as np
import orjson

from experiments import pages
from kernelwatch.project import ROOT
from kernelwatch.show.site import changes, kept
from kernelwatch.store import folders

#: The stored history's newest results of a whole suite.
NEWEST = "nvidia-h200/bc984652-virtualenv-py3.json"

#: The made-up machines, and how the names begin of the benchmarks that each has.
MACHINES = {"gpu-one": "time_", "gpu-two": "time_", "without": "track_counted."}

#: Numbers that each has of a commit.
NUMBERS = 800

SAMPLES = 20


def publish(folder: Path, repository: Path, *, stand_in: bool = False) -> tuple[float, float]:
    """Publish a folder's results; return CPU and wall seconds."""
    config = {
        "version": 1,
        "project": "publishing",
        "repo": str(repository),
        "branches": ["main"],
        "plugins": [".runner.asv_plugin", ".report.site.publisher"],
        "environment_type": "virtualenv",
        "results_dir": str(folder / "results"),
        "html_dir": str(folder / "html"),
        "regressions_thresholds": {".*": 0.02},
    }
    (folder / "asv.conf.json").write_text(json.dumps(config), encoding="utf-8")
    words = ["--config", str(folder / "asv.conf.json"), "publish", "--no-pull"]
    own = {"PYTHONPATH": str(ROOT), kept.FOLDER: str(folder / "cache"), folders.RESULTS: str(folder / "results")}
    command = [sys.executable, "-m", __name__ if __name__ != "__main__" else "experiments.publishing", "--stand-in"]
    began, before = time.monotonic(), _cpu()
    subprocess.run(
        [*(command if stand_in else [sys.executable, "-m", "asv"]), *words],
        cwd=ROOT,
        env=os.environ | own,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return _cpu() - before, time.monotonic() - began


def _cpu() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _with_stand_ins(words: Sequence[str]) -> None:
    """Run asv, where no commit's review says anything."""
    from asv.main import main as asv  # noqa: PLC0415 -- only this process is asv

    def change(history: Any, task: Any) -> dict[str, Any]:
        return {
            "machine": history.machine,
            "head": task.head,
            "previous": task.previous,
            "new": task.new,
            "notes": [],
            "cubins": [],
            **changes._folded(()),
        }

    with mock.patch.object(changes, "_change", change), mock.patch.object(sys, "argv", ["asv", *words]):
        asv()


def stored(folder: Path) -> tuple[float, float]:
    """Publish this repository's history, of which the newest results of an H200 are new."""
    copytree(ROOT / "results", folder / "results")
    newest = (folder / "results" / NEWEST).rename(folder / "newest")
    publish(folder, ROOT)
    newest.rename(folder / "results" / NEWEST)
    return publish(folder, ROOT)


def made_up(folder: Path, count: int) -> tuple[float, float]:
    """Publish a made-up history, of which one machine's results of the newest commit are new."""
    commits = _repository(folder / "repository", count)
    suite = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    (folder / "results").mkdir()
    (folder / "results" / "benchmarks.json").write_text(json.dumps(suite), encoding="utf-8")
    last = [
        list(_write(folder / "results", machine, _chosen(suite, begins), commits))[-1]
        for machine, begins in MACHINES.items()
    ]
    newest = last[0].rename(folder / "newest")
    publish(folder, folder / "repository", stand_in=True)
    newest.rename(last[0])
    return publish(folder, folder / "repository")


def _repository(path: Path, count: int) -> list[tuple[str, int]]:
    """Make a repository of empty commits, an hour apart; return their hashes and seconds."""
    seconds = [1_600_000_000 + 3600 * place for place in range(count)]
    commits = (f"commit refs/heads/main\ncommitter a <a@b> {each} +0000\ndata 1\nx\n" for each in seconds)
    git = ["git", "-C", str(path)]
    path.mkdir()
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
    subprocess.run([*git, "fast-import", "--quiet"], input="".join(commits), text=True, check=True)
    listed = subprocess.run([*git, "rev-list", "--reverse", "main"], capture_output=True, text=True, check=True)
    return list(zip(listed.stdout.split(), seconds, strict=True))


def _chosen(suite: dict[str, Any], begins: str) -> dict[str, Any]:
    """The first benchmarks of a kind, until they have NUMBERS configurations."""
    found: dict[str, Any] = {}
    total = 0
    for name in (each for each in sorted(suite) if each.startswith(begins)):
        if total < NUMBERS:
            found[name] = suite[name]
            total += math.prod(map(len, suite[name]["params"]))
    return found


def _write(results: Path, machine: str, chosen: dict[str, Any], commits: list[tuple[str, int]]) -> Iterator[Path]:
    """Write a machine's results of each commit: times scatter by 0.3 %, and every hundredth commit moves a tenth."""
    folder, noise = results / machine, np.random.default_rng(len(machine))
    folder.mkdir()
    facts = {"machine": machine}
    (folder / "machine.json").write_text(json.dumps(facts | {"version": 1}), encoding="utf-8")
    size = sum(math.prod(map(len, each["params"])) for each in chosen.values())
    level = np.exp(noise.normal(-8, 2, size))
    for place, (commit, seconds) in enumerate(commits):
        if place % 100 == 99:
            level *= np.where(noise.random(size) < 0.1, 1.05, 1.0)
        samples = level[:, None] * (1 + noise.normal(0, 0.003, (size, SAMPLES)))
        medians, low, high = np.median(samples, axis=1), samples.min(axis=1), samples.max(axis=1)
        rows, start = {}, 0
        for name, each in chosen.items():
            one = slice(start, start := start + math.prod(map(len, each["params"])))
            counted = name.startswith("track")
            values = level[one].round(6) if counted else medians[one]
            row = [values.tolist(), each["params"], each["version"], 1000 * seconds, 1.0]
            repeat = [SAMPLES] * len(values)
            timed = [
                *(edge[one].tolist() for edge in (low, high, low, high)),
                [1] * len(values),
                repeat,
                samples[one].tolist(),
            ]
            rows[name] = row if counted else row + timed
        document = {
            "commit_hash": commit,
            "env_name": "virtualenv-py3",
            "date": 1000 * seconds,
            "params": facts,
            "python": "3",
            "requirements": {},
            "env_vars": {},
            "result_columns": list(_COLUMNS),
            "results": rows,
            "durations": {},
            "version": 2,
        }
        path = folder / f"{commit[:8]}-virtualenv-py3.json"
        path.write_bytes(orjson.dumps(document))
        yield path


_STATS = ("ci_99_a", "ci_99_b", "q_25", "q_75", "number", "repeat")
_COLUMNS = (
    "result",
    "params",
    "version",
    "started_at",
    "duration",
    *(f"stats_{one}" for one in _STATS),
    "samples",
    "profile",
)


def main(words: Sequence[str] | None = None) -> None:
    """Publish both, and print a table."""
    given = sys.argv[1:] if words is None else list(words)
    if given[:1] == ["--stand-in"]:
        _with_stand_ins(given[1:])
        return
    parser = argparse.ArgumentParser("python -m experiments.publishing", description=__doc__)
    parser.add_argument(
        "--commits", type=int, default=1000, help="of the made-up history; 0 leaves it out (default: 1000)"
    )
    count = parser.parse_args(given).commits
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("stored", "made-up")[: 2 if count else 1]:
            (path := Path(folder, name)).mkdir()
            cpu, wall = stored(path) if name == "stored" else made_up(path, count)
            rows.append(
                (name if name == "stored" else f"made up, {count} commits, 3 machines", f"{cpu:.1f}", f"{wall:.1f}")
            )
    print(pages.table(rows, ("history", "CPU seconds", "seconds"), ("left", "right", "right")))


if __name__ == "__main__":
    main()
