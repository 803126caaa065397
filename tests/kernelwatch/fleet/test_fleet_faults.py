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
from kernelwatch.fleet.shards import Outcome, Shard
from kernelwatch.fleet.stored import Last, Stored
from kernelwatch.fleet.task import HungError
from kernelwatch.project import ROOT
from kernelwatch.store.accept.refusal import RefusedError
from tests.faults import test_orphans as orphans

pytestmark = [pytest.mark.fleet, pytest.mark.filterwarnings("default")]  # other people's, of Dask

A, B = "a" * 40, "b" * 40
MACHINE, ONE, TWO = "nvidia-stub", "GPU-1", "GPU-2"
SHARD = Shard((A, B), {"time_copy.DeviceCopy.time_back_to_back": ("'1x1', 'int8'",)})


@pytest.mark.parametrize(
    ("body", "raised", "text"),
    [
        ("cat; exit 0", None, ""),
        ("exit 2", None, ""),
        ("echo no such commit; exit 1", "FailedError", "no such commit"),
        ("echo still alive; sleep 60", "HungError", "still alive"),
        ("while sleep 0.1; do echo $((n=n+1)); [ $n -lt 9 ] || exit 0; done", None, ""),
    ],
)
def test_asv_process(body: str, raised: str | None, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fails or says nothing for too long is an error; what it says as it goes keeps it alive."""
    from kernelwatch.fleet import task

    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    said: list[str] = []
    began = time.monotonic()
    if raised is None:
        task.run(SHARD, tmp_path, tmp_path, said.append, 0.5)
    else:
        with pytest.raises(getattr(task, raised), match=text):
            task.run(SHARD, tmp_path, tmp_path, said.append, 0.5)
    assert time.monotonic() - began < 10
    assert body != "cat; exit 0" or said == [A, B], "the commits are asked for in their order"


def test_asv_ends_with_its_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told the worker's process, and asks the system to be killed with it: `kernelwatch.mortal`."""
    from kernelwatch.fleet import task

    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\necho ${mortal.RUN}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    said: list[str] = []
    task.run(SHARD, tmp_path, tmp_path, said.append, 5.0)
    assert said == [str(os.getpid())]


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ([HungError("nothing was heard")] * 3, "GPU-1: nothing was heard"),
        ([KeyError("name")] * 3, "GPU-1: KeyError: 'name'"),
        ([KeyError("name"), HungError("nothing was heard")], ""),
    ],
)
def test_what_comes_to_nothing(raised: list[Exception], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried twice more, and travels as a text."""
    import distributed

    from kernelwatch.fleet import clone, task

    left = list(raised)

    def measured(*_: object) -> Outcome:
        if left:
            raise left.pop(0)
        return Outcome(TWO)

    monkeypatch.setattr(task, "_measured", measured)
    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(name=ONE))
    packed = task.measure(SHARD, clone.Source(b"", A), {})
    assert not left
    if said:
        with pytest.raises(RefusedError, match=f"^{said}$"):
            Outcome.read(packed)
    else:
        assert Outcome.read(packed) == Outcome(TWO)


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
    by: dict[tuple[str, str], Last]

    def __init__(self, *_: object) -> None:
        pass

    def has(self, commit: str, benchmark: str) -> set[str]:
        """As taken."""
        return {text for one, name, text in self.kept if (one, name) == (commit, benchmark)}

    def last(self) -> dict[tuple[str, str], Last]:
        """As a test says."""
        return self.by


@pytest.fixture
def books(monkeypatch: pytest.MonkeyPatch) -> type[Books]:
    """Empty ones, which the engine reads and writes."""
    from kernelwatch.fleet import engine, merge

    Books.kept, Books.by = set(), {}

    def merged(shard: Shard, outcome: Outcome, *_: object) -> str:
        new = {(c, n, t) for c in shard.commits if c != shard.overlap for n, ts in shard.series.items() for t in ts}
        assert not new & Books.kept, "nothing is counted twice"
        Books.kept |= new
        return outcome.device

    monkeypatch.setattr(engine, "Stored", Books)
    monkeypatch.setattr(merge, "merge", merged)
    monkeypatch.setattr(engine, "TICK", 0.1)
    return Books


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Any]:
    """Two workers in processes of their own, with stubs of GPUs."""
    from distributed import Client, Nanny, Scheduler, SpecCluster

    environment = {"FLEET_TEST": str(tmp_path)}
    workers = {
        uuid: {
            "cls": Nanny,
            "options": {
                "nthreads": 1,
                "name": uuid,
                "resources": {MACHINE: 1, uuid: 1},
                "memory_limit": 0,
                "env": environment,
            },
        }
        for uuid in (ONE, TWO)
    }
    options = {"dashboard_address": None, "host": "127.0.0.1"}
    with (
        SpecCluster(workers, {"cls": Scheduler, "options": options}, silence_logs=40) as running,
        Client(running) as client,
    ):
        client.wait_for_workers(2)
        yield client


def _stub(shard: Shard, _: object, __: object, ___: object) -> bytes:
    """Stand for a measurement."""
    from distributed import get_worker

    time.sleep(0.1)
    return Outcome(str(get_worker().name), {}).packed()


def _deadly(shard: Shard, _: object, folder: Any, ___: object) -> bytes:
    """Stand for one; the first on each worker kills it."""
    from distributed import get_worker

    mark = Path(os.environ["FLEET_TEST"], str(get_worker().name))
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return _stub(shard, None, None, None)


def _fleet(client: Any, **more: Any) -> Any:
    from kernelwatch.fleet import clone, engine

    source = clone.Source(b"", A)
    return engine.Fleet(client, source, Path("results"), Path(), print, bench="TransposeInL2|time_kernel.Add", **more)


def _wanted(*commits: str) -> set[tuple[str, str, str]]:
    from kernelwatch.fleet import shards

    series = [one for one in shards.series() if one.benchmark.split(".")[1] in ("TransposeInL2", "Add")]
    chosen = shards.select(series)
    return {(commit, name, text) for commit in commits for name, texts in chosen.items() for text in texts}


def test_killed_workers(books: type[Books], cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker is killed once: all is measured, once."""
    from kernelwatch.fleet import task

    monkeypatch.setattr(task, "measure", _deadly)
    assert _fleet(cluster, largest=3).backfill([A, B])
    assert books.kept == _wanted(A, B)
    assert {path.name for path in tmp_path.iterdir()} == {ONE, TWO}


def test_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is away is waited for as long as is said, by a clock that the test sets, and no longer."""
    from kernelwatch.fleet import engine

    now = [0.0]

    def wait(*_: object, **__: object) -> None:
        now[0] += 1.0
        raise TimeoutError

    monkeypatch.setattr(engine, "wait", wait)
    monkeypatch.setattr(engine, "time", Mock(monotonic=lambda: now[0]))
    fleet = _fleet(Mock(submit=lambda *_, **__: Mock(done=lambda: False)), patience=5.0)
    monkeypatch.setattr(fleet, "machines", dict)
    assert fleet.measure(MACHINE, [Shard((A,), {}, TWO)]) == 0
    assert now[0] == 6.0


def test_gpu_gone(books: type[Books], cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its series go to the other, which measures the commit before once more."""
    from kernelwatch.fleet import shards, task

    books.kept = _wanted(A)
    books.by = {(one.benchmark, one.configuration): Last(TWO, A) for one in shards.series()}
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
    assert all(shard.overlap == A for shard in calls[-1])


def test_what_fails_again_and_again_ends(books: type[Books], cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fleet says what is wrong and does not go on for ever."""
    from kernelwatch.fleet import task

    monkeypatch.setattr(task, "measure", _broken)
    said: list[str] = []
    fleet = _fleet(cluster)
    fleet.say = said.append
    assert not fleet.backfill([A])
    assert books.kept == set()
    assert any("the disk is full" in line for line in said)


def test_what_comes_back_incomplete_ends(books: type[Books], cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark that the checkout has and the commit at HEAD does not, say."""
    from kernelwatch.fleet import merge, task

    monkeypatch.setattr(task, "measure", _stub)
    monkeypatch.setattr(merge, "merge", lambda *_: MACHINE)
    assert not _fleet(cluster).backfill([A])
    assert books.kept == set()


def _broken(*_: object) -> bytes:
    raise OSError("the disk is full")
