"""What a fleet does when something goes wrong: asv's process, a worker, a GPU, a result. Stubs measure."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from kernelwatch import mortal
from kernelwatch.fleet import plan, task
from kernelwatch.fleet.plan import Shard, Stored
from kernelwatch.fleet.task import Outcome
from kernelwatch.project import ROOT
from kernelwatch.store import git
from kernelwatch.store.reading import UnreadableError
from tests import commits
from tests.faults import test_orphans as orphans

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("default")]  # other people's, of Dask

A, B = "a" * 40, "b" * 40
MACHINE, ONE, TWO = "nvidia-stub", "GPU-1", "GPU-2"
SHARD = Shard((A, B), {"time_copy.DeviceCopy.time_back_to_back": ("'1x1', 'int8'",)})


@pytest.mark.parametrize(
    ("body", "problem", "heard"),
    [
        ("cat; exit 0", "", [A, B]),
        (f"echo ${mortal.RUN}; exit 2", "", [str(os.getpid())]),  # it is to end with its worker: mortal.py
        ("echo no such commit; exit 1", "(?s)asv ended with 1:.*no such commit", None),
        ("echo still alive; sleep 60", "(?s)nothing was heard.*still alive", None),
        ("while sleep 0.1; do echo $((n=n+1)); [ $n -lt 7 ] || exit 0; done", "", list("1234567")),
        ("printf 'no end of a line'", "", ["no end of a line"]),
    ],
)
def test_asv_process(
    body: str, problem: str, heard: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fails or says nothing for too long is an error; what it says as it goes keeps it alive."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(task, "SILENCE", 0.5)
    began = time.monotonic()
    running = task.run(SHARD, tmp_path, tmp_path)
    if problem:
        with pytest.raises(RuntimeError, match=problem):
            asyncio.run(running)
    else:
        assert asyncio.run(running) == heard
    assert time.monotonic() - began < 10


def test_what_comes_to_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It travels as a text: the driver reads no errors."""
    import distributed

    monkeypatch.setenv(task.WORK, str(tmp_path))
    monkeypatch.setattr(task, "clone", Mock(side_effect=KeyError("name")))
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(name=ONE))
    with pytest.raises(UnreadableError, match=f"^{ONE}: KeyError: 'name'$"):
        Outcome.read(task.measure(SHARD, b""))


@pytest.mark.parametrize("checkout", ["the repository", "a clone", "a clone of one commit"])
def test_clone(tmp_path: Path, checkout: str) -> None:
    """It has the commit, and a branch main for asv; a second one follows, after a worker was killed; files stay."""
    folder, found = commits.begin(tmp_path / "origin"), tmp_path / "worker" / "clone"
    commits.commit(folder, {"file": "one"})
    git.text(folder, "branch", "other")
    if checkout != "the repository":
        origin, folder = folder, tmp_path / "checkout"
        git.text(tmp_path, "clone", "--quiet", str(origin), str(folder))
        commits.own(folder)
        assert "origin/HEAD" in git.text(folder, "branch", "--all"), "what a clone of GitHub's has"
    if checkout == "a clone of one commit":
        git.text(folder, "checkout", "--quiet", "--detach")
    assert task.clone(task.bundled(folder), found) == found
    assert (found / "file").read_text() == "one"
    assert set(git.text(found, "rev-parse", "HEAD", "main").split()) == {git.text(folder, "rev-parse", "HEAD")}
    (found / ".asv").mkdir()
    (found / ".git" / "index.lock").touch()
    commits.commit(folder, {"file": "two"})
    task.clone(task.bundled(folder), found)
    assert (found / "file").read_text() == "two"
    assert (found / ".asv").exists()


DRIVER = """
import sys
from pathlib import Path
from kernelwatch.fleet import cluster
with cluster.embedded(Path(sys.argv[1]), 1):
    print("up", flush=True)
    sys.stdin.read()
"""


def test_killed_driver(tmp_path: Path) -> None:
    """Its scheduler and workers end with it."""
    mark = f"MARK={uuid.uuid4()}"
    command = ["env", mark, sys.executable, "-c", DRIVER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "up\n"
        assert len(orphans.processes(mark)) >= 3, "the driver, scheduler with nanny, and worker"
        driver.kill()
    orphans.gone(lambda: orphans.processes(mark))


class Books(Stored):
    """What is stored, without files: a set of configurations that `merge` adds to."""

    kept: set[tuple[str, str, str]]
    by: dict[tuple[str, str], str]

    def __init__(self, *_: object) -> None:
        pass

    def has(self, commit: str, benchmark: str) -> set[str]:
        """As taken."""
        return {text for one, name, text in self.kept if (one, name) == (commit, benchmark)}

    def last(self) -> dict[tuple[str, str], str]:
        """As a test says."""
        return self.by


@pytest.fixture
def books(monkeypatch: pytest.MonkeyPatch) -> type[Books]:
    """Empty ones, which the engine reads and writes."""
    from kernelwatch.fleet import engine

    Books.kept, Books.by = set(), {}

    def merged(outcome: Outcome, *_: object) -> None:
        new = {(a, b, c) for a, b, c in (name.split("/", 2) for name in outcome.files)}
        assert not new & Books.kept, "nothing is counted twice"
        Books.kept |= new

    monkeypatch.setattr(engine, "Stored", Books)
    monkeypatch.setattr(engine, "merge", merged)
    monkeypatch.setattr(engine, "TICK", 0.1)
    monkeypatch.setattr(plan, "LARGEST", 3)
    monkeypatch.setattr(task, "bundled", lambda _: b"")
    return Books


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers in processes of their own, with stubs of GPUs."""
    from distributed import Client, Nanny, Scheduler, SpecCluster

    plain = {"nthreads": 1, "memory_limit": 0}
    workers = {
        uuid: {"cls": Nanny, "options": {**plain, "name": uuid, "resources": {MACHINE: 1, uuid: 1}}}
        for uuid in (ONE, TWO)
    }
    options = {"dashboard_address": None, "host": "127.0.0.1"}
    with (
        SpecCluster(workers, {"cls": Scheduler, "options": options}, silence_logs=40) as running,
        Client(running) as client,
    ):
        client.wait_for_workers(2)
        yield client


def _stub(shard: Shard, *_: object) -> bytes:
    """Stand for a measurement, whose files are named after what was measured."""
    from distributed import get_worker

    time.sleep(0.05)
    every = [(name, text) for name, texts in shard.selected.items() for text in texts]
    files = {f"{commit}/{name}/{text}": b"" for commit in shard.commits for name, text in every}
    return Outcome(str(get_worker().name), files=files).packed()


def _broken(*_: object) -> bytes:
    raise OSError("the disk is full")


def _fleet(client: Any, **more: Any) -> Any:
    from kernelwatch.fleet import engine

    return engine.Fleet(client, Path(), Path("results"), bench="TransposeInL2|time_kernel.Add", **more)


def _wanted(*commits: str) -> set[tuple[str, str, str]]:
    chosen = plan.select(one for one in plan.series() if one.benchmark.split(".")[1] in ("TransposeInL2", "Add"))
    return {(commit, name, text) for commit in commits for name, texts in chosen.items() for text in texts}


@pytest.mark.parametrize(("stub", "why"), [(_broken, "the disk is full"), (_stub, "without all that was asked for")])
def test_what_comes_to_nothing_ends(
    stub: Any, why: str, books: type[Books], cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails again and again; or lacks something: a benchmark that the commit at HEAD has not, say."""
    from kernelwatch.fleet import engine

    monkeypatch.setattr(task, "measure", stub)
    monkeypatch.setattr(engine, "merge", lambda *_: None)
    said: list[str] = []
    assert not _fleet(cluster, say=said.append).backfill([A])
    assert any(why in line for line in said)


def test_gpu_gone(books: type[Books], cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its series go to the other. The last of this cluster's tests."""
    books.kept = _wanted(A)
    books.by = {(one.benchmark, one.configuration): TWO for one in plan.series()}
    monkeypatch.setattr(task, "measure", _stub)
    fleet = _fleet(cluster, patience=1.0)
    measure, calls, began = fleet.measure, [], time.monotonic()

    def retired(name: str, todo: list[Shard]) -> None:
        calls.append(todo)
        if len(calls) == 1:
            address = next(a for a, each in cluster.scheduler_info()["workers"].items() if each["name"] == TWO)
            cluster.retire_workers([address], close_workers=True)
        measure(name, todo)

    monkeypatch.setattr(fleet, "measure", retired)
    assert fleet.backfill([A, B])
    assert books.kept == _wanted(A, B)
    assert {shard.device for shard in calls[0]} == {TWO}
    assert {shard.device for shard in calls[-1]} == {None}
    assert time.monotonic() - began > 1.0, "it might have come back"
