"""What asv's fork server forks besides benchmarks: discovery, `setup_cache`, and processes that it leaves behind.

All of them have the commit's package, and end with that server.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import select
import shutil
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from asv_runner.discovery import _discover
from asv_runner.setup_cache import _setup_cache

from kernelwatch import mortal
from kernelwatch.asv import patches
from kernelwatch.asv.patches import Feature, Patch
from kernelwatch.instrument import exchange

T = TypeVar("T")

#: Where asv keeps what `setup_cache` returns, as no benchmark's result is called; and a name that no benchmark has.
CACHE, DISCOVERY = "cache.pickle", "discovery"

#: The plan, or whatever else the work leaves; what it returned; and a file that is locked while it is at work.
_RESULT, _LOCK, _LOG = "result.pickle", "lock", "log"


def _more(run: Callable[[Any], None]) -> Callable[[Any], None]:
    def wrapped(args: Any) -> None:
        """Answer for discovery and `setup_cache`, too."""
        folder, name, _, _, result = args
        if name == DISCOVERY:
            _discover((folder, result))
        elif result == CACHE:
            _setup_cache(args[:3])
        else:
            run(args)

    return wrapped


def features() -> tuple[Feature, ...]:
    """Return the patch of the fork server, which is made there: the suite imports this module."""
    return (Feature("a fork server for more than benchmarks", (Patch("asv_runner.server:_run", _more, "args"),)),)


patches.install(features())


def begin(work: Callable[[int], None], log: Path) -> None:
    """Fork a process that does some work, and ends when it is done.

    Parameters
    ----------
    work : callable
        Gets the number of the process that asv forks all others from, which it must not outlive.
    log : Path
        Where its output goes: asv may wait for the end of all that has the pipes of its own.
    """
    server = os.getppid()
    with mortal.surviving():
        if os.fork():
            return
    code = 1
    try:
        os.setsid()  # a Ctrl-C is for the run
        with log.open("w") as file:
            os.dup2(file.fileno(), sys.stdout.fileno())
            os.dup2(file.fileno(), sys.stderr.fileno())
        work(server)
        code = 0
    except BaseException:  # noqa: BLE001 -- whatever it is, the log has it
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ahead(name: str, work: Callable[[Path], object]) -> None:
    """Begin what a later `setup_cache` of this commit will ask `done` for; it takes no time from what is measured."""
    folder = _folder(name)
    folder.mkdir(exist_ok=True)
    lock = (folder / _LOCK).open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)  # the process inherits it, and frees it by its end

    def do(server: int) -> None:
        threading.Thread(target=_end_with, args=(server,), daemon=True).start()
        if exchange.ADDRESS in os.environ:  # some cores are left to who measures and who writes references
            os.nice(19)
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, cores[len(cores) // 4 :])
        found = work(folder)
        (folder / _RESULT).write_bytes(pickle.dumps(found))

    begin(do, folder / _LOG)
    lock.close()


def done(name: str, work: Callable[[Path], T]) -> T:
    """Return what work gives, which may have been done ahead; the files that it leaves are here, in asv's folder."""
    folder = _folder(name)
    # Other runs than the plugin's have no temporary folder of their own: what lies there may be another user's.
    if mortal.RUN in os.environ and (folder / _LOCK).exists():
        with (folder / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _RESULT).exists():
            found: T = pickle.loads((folder / _RESULT).read_bytes())
            shutil.copytree(folder, Path(), ignore=shutil.ignore_patterns(_RESULT, _LOCK, _LOG), dirs_exist_ok=True)
            return found
        print((folder / _LOG).read_text(encoding="utf-8", errors="replace"), file=sys.stderr)
    return work(Path())


def _folder(name: str) -> Path:
    """Where it is done, for this run and commit."""
    return Path(tempfile.gettempdir()) / f"kernelwatch-ahead-{os.getppid()}-{name}"


def _end_with(process: int) -> None:
    select.select([os.pidfd_open(process)], [], [])
    os._exit(1)
