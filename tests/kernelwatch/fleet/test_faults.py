"""What a fleet does when something goes wrong: asv's process, a worker, a GPU, a result. Stubs measure."""

from __future__ import annotations

import os
import signal
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
from kernelwatch.fleet import plan
from kernelwatch.fleet.clone import Source
from kernelwatch.fleet.shards import Outcome, Shard
from kernelwatch.fleet.stored import Stored
from kernelwatch.fleet.task import FailedError
from kernelwatch.project import ROOT
from kernelwatch.store.accept.refusal import RefusedError
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
    from kernelwatch.fleet import task

    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    said: list[str] = []
    began = time.monotonic()
    if problem:
        with pytest.raises(FailedError, match=problem):
            task.run(SHARD, tmp_path, tmp_path, said.append, 0.5)
    else:
        task.run(SHARD, tmp_path, tmp_path, said.append, 0.5)
        assert said == heard
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("raised", "said"),
    [(FailedError("nothing was heard"), "nothing was heard"), (KeyError("name"), "KeyError: 'name'")],
)
def test_what_comes_to_nothing(raised: Exception, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It travels as a text: the driver reads no errors."""
    import distributed

    from kernelwatch.fleet import task

    monkeypatch.setenv(task.WORK, str(tmp_path))
    monkeypatch.setattr(task, "_measured", Mock(side_effect=raised))
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(name=ONE))
    with pytest.raises(RefusedError, match=f"^{ONE}: {said}$"):
        Outcome.read(task.measure(SHARD, Source(b"", A), {}))


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
        assert len(orphans.processes(mark)) >= 4, "the driver, scheduler, nanny and worker"
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
    from kernelwatch.fleet import clone, engine, merge

    Books.kept, Books.by = set(), {}

    def merged(shard: Shard, *_: object) -> None:
        new = {(commit, n, text) for commit in shard.commits for n, texts in shard.selected.items() for text in texts}
        assert not new & Books.kept, "nothing is counted twice"
        Books.kept |= new

    monkeypatch.setattr(engine, "Stored", Books)
    monkeypatch.setattr(merge, "merge", merged)
    monkeypatch.setattr(engine, "TICK", 0.1)
    monkeypatch.setattr(clone, "bundled", lambda _: Source(b"", A))
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


def _stub(*_: object) -> bytes:
    """Stand for a measurement."""
    from distributed import get_worker

    time.sleep(0.05)
    return Outcome(str(get_worker().name)).packed()


def _deadly(shard: Shard, source: Source, *_: object) -> bytes:
    """Stand for one; the first on each worker kills it. The source names a folder for notes."""
    from distributed import get_worker

    mark = Path(source.head, str(get_worker().name))
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return _stub()


def _broken(*_: object) -> bytes:
    raise OSError("the disk is full")


def _fleet(client: Any, **more: Any) -> Any:
    from kernelwatch.fleet import engine

    return engine.Fleet(client, Path(), Path("results"), bench="TransposeInL2|time_kernel.Add", **more)


def _wanted(*commits: str) -> set[tuple[str, str, str]]:
    chosen = plan.select(one for one in plan.series() if one.benchmark.split(".")[1] in ("TransposeInL2", "Add"))
    return {(commit, name, text) for commit in commits for name, texts in chosen.items() for text in texts}


def test_killed_workers(books: type[Books], cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker is killed once: all is measured, once."""
    from kernelwatch.fleet import clone, task

    monkeypatch.setattr(task, "measure", _deadly)
    monkeypatch.setattr(clone, "bundled", lambda _: Source(b"", str(tmp_path)))
    assert _fleet(cluster, largest=3).backfill([A, B])
    assert books.kept == _wanted(A, B)
    assert {path.name for path in tmp_path.iterdir()} == {ONE, TWO}


def test_patience(books: type[Books], monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is away is waited for as long as is said, by a clock that the test sets, and no longer."""
    from kernelwatch.fleet import engine

    now = [0.0]

    def wait(*_: object, **__: object) -> None:
        now[0] += 1.0
        raise TimeoutError

    monkeypatch.setattr(engine, "wait", wait)
    monkeypatch.setattr(engine, "time", Mock(monotonic=lambda: now[0], monotonic_ns=lambda: 0))
    fleet = _fleet(Mock(submit=lambda *_, **__: Mock(done=lambda: False)), patience=5.0)
    monkeypatch.setattr(fleet, "machines", dict)
    assert fleet.measure(MACHINE, [Shard((A,), {}, TWO)]) == 0
    assert now[0] == 6.0


@pytest.mark.parametrize(("stub", "why"), [(_broken, "the disk is full"), (_stub, "without all that was asked for")])
def test_what_comes_to_nothing_ends(
    stub: Any, why: str, books: type[Books], cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails again and again; or lacks something: a benchmark that the commit at HEAD has not, say."""
    from kernelwatch.fleet import merge, task

    monkeypatch.setattr(task, "measure", stub)
    monkeypatch.setattr(merge, "merge", lambda *_: None)
    said: list[str] = []
    assert not _fleet(cluster, say=said.append).backfill([A])
    assert any(why in line for line in said)


def test_gpu_gone(books: type[Books], cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its series go to the other. The last of this cluster's tests."""
    from kernelwatch.fleet import task

    books.kept = _wanted(A)
    books.by = {(one.benchmark, one.configuration): TWO for one in plan.series()}
    monkeypatch.setattr(task, "measure", _stub)
    fleet = _fleet(cluster, patience=1.0)
    measure, calls = fleet.measure, []

    def retired(name: str, todo: list[Shard]) -> int:
        calls.append(todo)
        if len(calls) == 1:
            address = next(a for a, each in cluster.scheduler_info()["workers"].items() if each["name"] == TWO)
            cluster.retire_workers([address], close_workers=True)
        return int(measure(name, todo))

    monkeypatch.setattr(fleet, "measure", retired)
    assert fleet.backfill([A, B])
    assert books.kept == _wanted(A, B)
    assert {shard.device for shard in calls[0]} == {TWO, None}
    assert {shard.device for shard in calls[-1]} == {None}
