"""The folder of results: a run adds files, and changes none that git tracks, but asv's list of benchmarks.

What belongs to a commit lies in files of its own: asv's JSON, and records beside it. Their names begin as asv's do and
end in the moment of the run. Several files of a commit and environment are read as one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from asv.console import log
from asv.results import get_filename
from asv.util import UserError
from filelock import Timeout

from kernelwatch.config import cache_dir
from kernelwatch.store import git, index, reading, rows
from ptxcount.util import atomic_write

#: The environment variable that names another folder of results than the project's.
RESULTS = "KERNELWATCH_RESULTS"

#: The lock of a folder of results, which asv leaves alone.
LOCK = "run.lock"


def results(stored: Path) -> Path:
    """Return the folder that runs write to and that is read: the project's, unless another is named."""
    return Path(os.environ.get(RESULTS) or stored)


def machines(folder: Path) -> list[str]:
    """Return the names of the machines that have results."""
    return [path.parent.name for path in reading.listed(folder, "*/machine.json")]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lock a folder of results, and clear away what was not finished there.

    If another run holds the lock, say so once and wait until it ends. The system frees the lock of a killed process.
    Where the file system has no locks, say so and go on; what is unfinished may be another run's, and stays.

    Raises
    ------
    UserError
        The folder cannot be written.
    """
    lock, has_locks = cache_dir.make_file_lock(folder / LOCK), True
    try:
        folder.mkdir(parents=True, exist_ok=True)
        has_locks = cache_dir.acquire_lock(lock, blocking=False)
    except Timeout:
        log.warning(f"{folder} is in use by another run; waiting until it ends")
        lock.acquire()
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror}") from None
    if not has_locks:
        log.warning(f"{folder}: its file system has no locks; do not run two at a time, or set {RESULTS} to another")
    try:
        for path in folder.rglob(f"*.*.[0-9]*{atomic_write.UNFINISHED}") if has_locks else ():
            path.unlink()  # what it was to replace is as it was
        yield
    finally:
        lock.release()


class CommitFiles:
    """The files of a commit in one of asv's environments.

    Parameters
    ----------
    folder : Path
        The machine's.
    commit, environment : str
        The commit's hash, and the environment's name.
    """

    def __init__(self, folder: Path, commit: str, environment: str) -> None:
        self._folder = folder
        tracked = (git.asked(folder, "ls-files", "-z", "--", ".") if folder.exists() else None) or ""
        found = {
            path: content
            for path, content, document in reading.files(folder, commit)
            if (document.commit_hash, document.env_name) == (commit, environment)
        }
        own = [path for path in found if path.name not in tracked.split("\0")]
        self._own = [found.pop(path) for path in own]
        self._tracked = list(found.values())
        plain = Path(get_filename(folder.name, commit, environment)).stem
        #: The beginning of the files' names. Those of an earlier run go on, unless git tracks them.
        self._stem = own[-1].stem if own else f"{plain}-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}"

    def read(self) -> dict[str, Any] | None:
        """Return what all files hold, as one of asv's; None if there are none."""
        every = [*self._tracked, *self._own]
        return rows.together(*every) if every else None

    def save(self, document: Mapping[str, Any], records: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Add results and lines of records. What files that git tracks say already is not said again."""
        known = rows.together(*self._tracked) if self._tracked else {"results": {}}
        found = rows.together(*self._tracked, *self._own, document)
        more = {
            name: cells
            for name, cells in found["results"].items()
            if name not in known["results"]
            or not rows.have_same_numbers(rows.read(known, name), rows.read(found, name))
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        if more:
            atomic_write.write(self._folder / f"{self._stem}.json", json.dumps({**found, "results": more}))
        for file, lines in records.items():
            append(self._folder / f"{self._stem}.{file}", *lines)
        index.list_results(self._folder)  # so that the next review reads the files of its commits alone


def append(path: Path, *entries: Mapping[str, Any]) -> None:
    """Add the entries that a file of JSON lines lacks, all of them or none; it is made if there is none."""
    before = path.read_bytes().splitlines() if path.exists() else []
    if more := [line for line in (json.dumps(each).encode() for each in entries) if line not in before]:
        atomic_write.write(path, b"".join(line + b"\n" for line in (*before, *more)))


def _without_code(described: Any) -> Any:
    """A description without the classes' text and its lines, which say nothing of a number: versions are explicit."""
    if not isinstance(described, dict):
        return described
    return {name: _without_code(each) for name, each in described.items() if name not in ("code", "setup_cache_key")}


def describe(folder: Path, came: Path, machine: str) -> None:
    """Take over what a folder says of a machine and of the benchmarks, where it says something new.

    Raises
    ------
    UnreadableError
        The machine is another than the one of that name.
    """
    for name in (f"{machine}/machine.json", reading.SUITE):
        new, path = reading.parsed(came / name), folder / name
        if path.exists() and name != reading.SUITE and reading.parsed(path) != new:
            raise reading.UnreadableError(f"{came / name}: is not the machine of {path}; choose another --machine")
        if not path.exists() or _without_code(reading.parsed(path)) != _without_code(new):
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write.write(path, (came / name).read_bytes())
