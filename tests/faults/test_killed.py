"""Killed runs, full disks and concurrent runs: every file still loads, and no stored value is lost."""

import errno
import fcntl
import itertools
import json
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from asv.console import log
from asv.util import UserError

from kernelwatch.store import folders, models
from ptxcount.util.atomic_write import UNFINISHED

MACHINE, COMMIT, ENVIRONMENT = "m", "c0ffee" * 6 + "c0ff", "virtualenv-py3"
RECORD = "runs.jsonl"
#: A text so long that its file takes several writes.
LONG = "x" * 20_000


def start(does: Callable[..., None], *args: Any) -> Any:
    process = multiprocessing.get_context("fork").Process(target=does, args=args, daemon=True)
    process.start()
    return process


def store(folder: Path, number: int) -> None:
    """Store machine, benchmarks, benchmark `time_x{number}` of the commit, and the run's record, as a run does."""
    came = folder.with_name(f"came-{number}")
    (came / MACHINE).mkdir(parents=True)
    (came / MACHINE / "machine.json").write_text('{"machine": "m"}')
    (came / "benchmarks.json").write_text(json.dumps({"time_x": {"unit": f"{LONG}{number}"}}))
    folders.copy_descriptions(folder, came, MACHINE)
    stored = {"commit_hash": COMMIT, "env_name": ENVIRONMENT, "date": 0, "params": {}, "python": "3", "version": 2}
    row = [[1.0], [], "1", 0, None, *[None] * 6, [[float(n) for n in range(4000)]]]
    columns = list(models.StoredRow.__struct_fields__)
    document = {**stored, "result_columns": columns, "results": {f"time_x{number}": row}}
    record = {RECORD: [{"number": number, "text": LONG}]}
    folders.CommitFiles(folder / MACHINE, COMMIT, ENVIRONMENT).save(document, record)


def _read_values(folder: Path) -> set[int]:
    """Return the numbers in the record. Assert that every file loads, and that the commit has these numbers."""
    for path in folder.rglob("*.json"):
        assert isinstance(json.loads(path.read_bytes()), dict), path
    document = folders.CommitFiles(folder / MACHINE, COMMIT, ENVIRONMENT).read_merged() or {"results": {}}
    lines = [line for path in (folder / MACHINE).glob(f"*.{RECORD}") for line in path.read_text().splitlines()]
    recorded = {json.loads(line)["number"] for line in lines}
    assert {f"time_x{number}" for number in recorded} <= document["results"].keys()
    return recorded


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


#: Step of a write -> owner and name of the function that does the step.
STEPS: dict[str, tuple[Any, str]] = {"on the disk": (os, "fsync"), "named": (Path, "replace")}


def _kill_at(folder: Path, number: int, step: str) -> None:
    """Store a number, and die at a step of the file of that index: a run writes three files."""
    owner, name = STEPS[step]
    does, turns = getattr(owner, name), itertools.count()

    def do(*args: Any, **kwargs: Any) -> Any:
        return os.kill(os.getpid(), signal.SIGKILL) if next(turns) == number else does(*args, **kwargs)

    setattr(owner, name, do)
    store(folder, number)


@pytest.mark.parametrize("step", STEPS)
def test_killed_write_keeps_stored_values(step: str, folder: Path) -> None:
    store(folder, -1)
    for number in range(3):
        process = start(_kill_at, folder, number, step)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert -1 in _read_values(folder)
    with folders.exclusive_lock(folder):
        pass  # the lock of the next run removes unfinished files
    assert not list(folder.rglob("*.unfinished"))


def _limit_size(folder: Path, number: int, size: int) -> None:
    """Store a number with a limit on the size of files, in bytes; exit with the error's number."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    try:
        store(folder, number)
    except OSError as error:
        os._exit(error.errno or 1)


@pytest.mark.parametrize(
    ("free", "is_enough"), [*((size, False) for size in range(0, len(LONG), 4985)), (10 * len(LONG), True)]
)
def test_full_disk_keeps_stored_values(free: int, is_enough: bool, folder: Path) -> None:
    """A run without room leaves no file. The next run adds its number."""
    store(folder, 1)
    process = start(_limit_size, folder, 2, free)
    process.join()
    assert process.exitcode in ([0] if is_enough else [errno.EFBIG, errno.ENOSPC])
    assert _read_values(folder) == ({1, 2} if is_enough else {1})
    assert not list(folder.rglob(f"*{UNFINISHED}"))
    store(folder, 3)
    assert 3 in _read_values(folder)


def test_record_lines_are_appended_once(tmp_path: Path) -> None:
    """If JSON cannot represent an entry, none is appended. An incomplete line before them stays separate."""
    entries: list[dict[str, Any]] = [{"name": "one", "samples": [1.0, 2.5]}, {"name": "µs\n", "n": []}, {}]
    path = tmp_path / "kept.jsonl"
    path.write_text("nan,")
    for entry in [*entries, *entries]:
        folders.append_lines(path, entry)
    refused: list[list[dict[str, Any]]] = [[{"n": 1}, {"n": {2}}], [{"n": {1}}]]
    for wrong in refused:
        with pytest.raises(TypeError):
            folders.append_lines(path, *wrong)
    first, *rest_of_lines = path.read_text().splitlines()
    assert (first, [*map(json.loads, rest_of_lines)]) == ("nan,", entries)
    assert list(tmp_path.iterdir()) == [path]


def _wait_for_text(path: Path, text: str = "") -> None:
    ends = time.monotonic() + 60
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < ends, path
        time.sleep(0.01)


def _hold_lock(folder: Path, number: int, is_quick: bool) -> None:
    """Store a number under a run's lock, at once or when the file `go on` exists; write messages to a file."""
    with folder.with_name(f"said-{number}").open("w", buffering=1) as file, redirect_stdout(file):
        log._logger.handlers.clear()
        log.enable()
        with folders.exclusive_lock(folder):
            folder.with_name("began").touch()
            while not is_quick and not folder.with_name("go on").exists():
                time.sleep(0.01)
            store(folder, number)


@pytest.mark.parametrize("is_killed", [False, True])
def test_second_run_waits_for_the_first(is_killed: bool, folder: Path) -> None:
    """The second run prints that it waits, and stores its number after the first has ended or was killed."""
    first = start(_hold_lock, folder, 1, False)  # until the file `go on` exists
    _wait_for_text(folder.with_name("began"))
    second = start(_hold_lock, folder, 2, True)
    _wait_for_text(folder.with_name("said-2"), f"{folder} is in use by another run; waiting until it ends")
    second.join(0.5)
    assert not (folder / MACHINE).exists(), "the second run did not wait"
    if is_killed:
        first.kill()
    else:
        folder.with_name("go on").touch()
    for run in (first, second):
        run.join(20)
    assert (first.exitcode, second.exitcode) == (-signal.SIGKILL if is_killed else 0, 0)
    assert _read_values(folder) == ({2} if is_killed else {1, 2})
    assert "in use" not in folder.with_name("said-1").read_text()
    assert folder.with_name("said-2").read_text().count("in use") == 1


def test_run_goes_on_without_locks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without locks, it warns, and stores its number even if a lock file exists."""
    messages: list[str] = []
    monkeypatch.setattr(log, "warning", messages.append)
    no_locks = OSError(errno.ENOSYS, "Function not implemented")
    monkeypatch.setattr(fcntl, "flock", mock.Mock(side_effect=no_locks))
    folder.mkdir()
    (folder / folders.LOCK).write_text("4711\n")
    for number in (1, 2):
        with folders.exclusive_lock(folder):
            store(folder, number)
    assert [message.partition("; ")[0] for message in messages] == [f"{folder}: the file system has no locks"] * 2
    assert _read_values(folder) == {1, 2}


def test_unwritable_results_are_an_error(folder: Path) -> None:
    folder.touch()
    with pytest.raises(UserError, match="results cannot be written: File exists"), folders.exclusive_lock(folder):
        pytest.fail("a file was locked as a folder of results")
