"""A process that stores results as a run of asv does, until it is killed or kills itself.

Processes begin with asv imported, so that many of them take little time.
"""

from __future__ import annotations

import errno
import itertools
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from asv import util
from asv.console import log
from asv.results import Results

from kernelwatch.asv import plugin as asv_plugin
from kernelwatch.store import folders, jsonl

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.faults.writer"])

MACHINE = "m"
BENCHMARK = "time_x"
RECORD = "runs.jsonl"
#: Files in the folder of results: a measurement makes the first as it begins, and ends with the second.
BEGAN, RELEASE = "began", "release"
#: Every file takes several writes.
SAMPLES = [float(n) for n in range(4000)]
LONG = "x" * 20_000
#: Files that `store` writes, each of them once.
FILES = 4

#: What a file goes through that is written, and what kills a process that is about to do it.
STEPS: dict[str, tuple[Any, str]] = {"on the disk": (os, "fsync"), "named": (Path, "replace")}


def start(does: Callable[..., None], *args: Any) -> Any:
    """A process that does something of this module."""
    process = CONTEXT.Process(target=does, args=args, daemon=True)
    process.start()
    return process


def results(folder: Path) -> Results:
    """The stored results of one commit."""
    found = Results({"machine": MACHINE}, {}, "c0ffee" * 6 + "c0ff", 0, "3", "virtualenv-py3", {})
    found.load_data(str(folder))
    return found


def store(folder: Path, number: int) -> None:
    """Do what a run does: machine, benchmarks, one more value of the commit, and the run's record."""
    util.write_json(str(folder / MACHINE / "machine.json"), {"machine": MACHINE, "ram": LONG}, 1)
    util.write_json(str(folder / "benchmarks.json"), {BENCHMARK: {"code": LONG}}, 2)
    found = results(folder)
    found._results[BENCHMARK] = [*found._results.get(BENCHMARK, []), number]
    found._samples[BENCHMARK], found._stats[BENCHMARK] = [SAMPLES], None
    found.save(str(folder))
    jsonl.append(folder / MACHINE / RECORD, {"number": number, "text": LONG})


def run_to(folder: Path, number: int, step: str, turn: int) -> None:
    """Store a number, and die at a step of one of the files."""
    asv_plugin.setup()
    _die_at(step, turn)
    store(folder, number)


def _die_at(step: str, turn: int) -> None:
    owner, name = STEPS[step]
    does, turns = getattr(owner, name), itertools.count()
    die = partial(os.kill, os.getpid(), signal.SIGKILL)
    setattr(owner, name, lambda *args, **kwargs: die() if next(turns) == turn else does(*args, **kwargs))


def run_in_room(folder: Path, number: int, size: int) -> None:
    """Store a number where files may have so many bytes; exit with 28 where there is no room."""
    asv_plugin.setup()
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    try:
        store(folder, number)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EFBIG):
            raise
        os._exit(errno.ENOSPC)


class Measuring:
    """Stands for asv's `Run`: loads what is stored of a commit, measures for a while, stores both."""

    @classmethod
    def run(cls, conf: Any, *, number: int, seconds: float, _returns: dict[str, Any]) -> None:
        """Measure a number."""
        found = results(Path(conf.results_dir))
        Path(conf.results_dir, BEGAN).touch()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and not Path(conf.results_dir, RELEASE).exists():
            time.sleep(0.01)
        found._results[f"{BENCHMARK}{number}"] = [number]
        found._samples[f"{BENCHMARK}{number}"] = found._stats[f"{BENCHMARK}{number}"] = None
        found.save(conf.results_dir)
        asv_plugin._current[-1].note(found.commit_hash, f"{BENCHMARK}{number}", "")
        _returns["machine_params"] = {"machine": MACHINE}


def run_recorded(folder: Path, number: int, seconds: float, said: Path) -> None:
    """Run that within what surrounds every run; what it says goes to a file."""
    with said.open("w", buffering=1) as file, redirect_stdout(file), redirect_stderr(file):
        log.enable()
        asv_plugin.setup()
        os.environ[folders.RESULTS] = str(folder)
        recorded = asv_plugin._recorded(Measuring.run.__func__)  # type: ignore[attr-defined]
        recorded(
            Measuring, SimpleNamespace(results_dir=str(folder), launch_method="spawn"), number=number, seconds=seconds
        )
