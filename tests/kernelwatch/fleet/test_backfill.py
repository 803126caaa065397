"""A backfill on two workers without a GPU, one of which is killed: the results are those of one run of asv."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from kernelwatch.fleet.shards import Shard
from kernelwatch.fleet.stored import Stored
from kernelwatch.store import folders, record, samples
from tests.repository import ENVIRONMENTS, SMALL_KERNELS, SMALL_VALUES, Repository

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("default")]  # other people's, of Dask

COMPILED = "track_compiled.Compiled"


def documents(folder: Path) -> dict[str, Any]:
    """All results of asv's without dates and durations."""
    found = {}
    for path in sorted(folder.glob("*/????????-*.json")):
        found[path.name] = samples.unpack(json.loads(path.read_text(), parse_constant=str))
        found[path.name]["durations"] = {}
        for row in found[path.name]["results"].values():
            row[3] = row[4] = None
    return found


def test_killed_worker(tmp_path: Path, environments: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two shards over two commits. What the killed worker had begun is measured by another, from the beginning."""
    from kernelwatch.fleet import cluster, engine

    repository = Repository(tmp_path, SMALL_KERNELS[:2], SMALL_VALUES, environments)
    repository.commit("as it is")
    (repository.path / "README.md").write_text("another text\n", encoding="utf-8")
    repository.commit("another text")
    run = repository.asv("run", "--record-samples", "--bench", COMPILED, "ALL")
    assert run.returncode == 0, run.stdout + run.stderr
    repository.share_environments()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("PYTHONPATH", folders.RESULTS):
        monkeypatch.delenv(name, raising=False)
    for number in range(2):  # workers find asv's environments made
        clone = tmp_path / "work" / f"{os.uname().nodename}-{number}" / "clone"
        shutil.copytree(environments, clone / ENVIRONMENTS, symlinks=True)

    plain = folders.local(repository.path / "results")
    commits = tuple(repository.git("rev-list", "--reverse", "HEAD").split())
    (machine,) = (path.name for path in plain.iterdir() if path.is_dir())
    names = [f"{COMPILED}.track_{metric}" for metric in ("registers", "spill_bytes", "shared_bytes")]
    texts = sorted(Stored(plain, machine).has(commits[0], names[0]))
    parts = [texts[::2], texts[1::2]]
    todo = [Shard(commits, {name: tuple(part) for name in names}) for part in parts]
    said: list[str] = []
    killed: list[int] = []
    with cluster.embedded(tmp_path / "work", 2) as client:

        def kill(event: tuple[float, dict[str, Any]]) -> None:
            if "Building" in event[1]["said"] and not killed:
                killed.append(event[1]["process"])
                os.kill(killed[0], signal.SIGKILL)

        client.subscribe_topic("fleet", kill)
        fleet = engine.Fleet(client, repository.path, tmp_path / "stored", said.append)
        assert fleet.measure(machine, todo) == len(todo), said
    assert len(killed) == 1
    stored = folders.local(tmp_path / "stored")  # which do not know this machine yet
    assert documents(stored) == documents(plain)
    runs = record.read(stored, machine)
    assert sorted(sorted(run["selected"][names[0]]) for run in runs) == sorted(parts)
    assert [run["commits"] for run in runs] == [sorted(commits)] * 2
