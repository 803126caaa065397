"""A process that stores results as a run of asv does, until it is killed or kills itself.

Processes begin with asv imported, so that many of them take little time.
"""

from __future__ import annotations

import errno
import itertools
import json
import multiprocessing
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from asv import util
from asv.console import log
from asv.results import Results
from asv.runner import BenchmarkResult

from kernelwatch.store import folders

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.faults.writer"])

MACHINE, COMMIT, ENVIRONMENT = "m", "c0ffee" * 6 + "c0ff", "virtualenv-py3"
BENCHMARK = "time_x"
RECORD = "runs.jsonl"
#: Files in the folder of results: a measurement makes the first as it begins, and ends with the second.
BEGAN, RELEASE = "began", "release"
#: Every file takes several writes.
SAMPLES = [float(n) for n in range(4000)]
LONG = "x" * 20_000
#: Files that `store` writes of a machine that is known, each of them once.
FILES = 3

#: What a file goes through that is written, and what kills a process that is about to do it.
STEPS: dict[str, tuple[Any, str]] = {"on the disk": (os, "fsync"), "named": (Path, "replace")}


def start(does: Callable[..., None], *args: Any) -> Any:
    """A process that does something of this module."""
    process = CONTEXT.Process(target=does, args=args, daemon=True)
    process.start()
    return process


def numbers(folder: Path) -> set[int]:
    """The numbers that are stored of one commit."""
    found = folders.CommitFiles(folder / MACHINE, COMMIT, ENVIRONMENT).read() or {"results": {}}
    return {int(name.removeprefix(BENCHMARK)) for name in found["results"]}


def store(folder: Path, number: int) -> None:
    """Do what a run does: machine, benchmarks, one more benchmark of the commit, and the run's record."""
    found = Results({"machine": MACHINE}, {}, COMMIT, 0, "3", ENVIRONMENT, {})
    described = {"name": f"{BENCHMARK}{number}", "version": "1", "params": []}
    found.add_result(described, BenchmarkResult([1.0], [SAMPLES], [1], 0, "", None), record_samples=True)
    with tempfile.TemporaryDirectory() as stage:
        found.save(stage)
        (document,) = (json.loads(path.read_bytes()) for path in Path(stage, MACHINE).iterdir())
        util.write_json(str(Path(stage, MACHINE, "machine.json")), {"machine": MACHINE}, 1)
        util.write_json(str(Path(stage, "benchmarks.json")), {BENCHMARK: {"unit": f"{LONG}{number}"}}, 2)
        folders.describe(folder, Path(stage), MACHINE)
    record = {RECORD: [{"number": number, "text": LONG}]}
    folders.CommitFiles(folder / MACHINE, COMMIT, ENVIRONMENT).save(document, record)


def run_to(folder: Path, number: int, step: str, turn: int) -> None:
    """Store a number, and die at a step of one of the files."""
    _die_at(step, turn)
    store(folder, number)


def _die_at(step: str, turn: int) -> None:
    owner, name = STEPS[step]
    does, turns = getattr(owner, name), itertools.count()
    die = partial(os.kill, os.getpid(), signal.SIGKILL)
    setattr(owner, name, lambda *args, **kwargs: die() if next(turns) == turn else does(*args, **kwargs))


def run_in_room(folder: Path, number: int, size: int) -> None:
    """Store a number where files may have so many bytes; exit with 28 where there is no room."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    try:
        store(folder, number)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EFBIG):
            raise
        os._exit(errno.ENOSPC)


def run_locked(folder: Path, number: int, seconds: float, said: Path) -> None:
    """Measure for a while with the lock of a run, and store a number; what is said goes to a file."""
    with said.open("w", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
        log.enable()
        with folders.alone(folder):
            (folder / BEGAN).touch()
            ends = time.monotonic() + seconds
            while time.monotonic() < ends and not (folder / RELEASE).exists():
                time.sleep(0.01)
            store(folder, number)
