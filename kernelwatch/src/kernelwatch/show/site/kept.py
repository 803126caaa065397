"""Reviews of neighbouring commits, kept by all that they were made from: `~/.cache/coalescing-watch/published`.

Reviewing a whole history takes longer than all else that publishing does. An entry is one file, called by the SHA-256
of what it was made from. It takes its place by a rename, so that two processes may publish at once.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from kernelwatch import home, settings
from kernelwatch.project import ROOT
from kernelwatch.review import acknowledged
from kernelwatch.store import reading, record
from kernelwatch.store.reading import SUITE
from ptxcount import whole

#: Days after which an entry that no site needed is removed.
DAYS = 30

#: All code that a verdict may depend on, here and elsewhere.
_CODE = settings.code()
_PACKAGES = ("asv", "numpy", "scipy")
_LIBRARY = Path(__file__).parents[2]

#: A commit, wherever a line of a record names it.
_HASH = re.compile(rb'"([0-9a-f]{40})"')


def directory() -> Path:
    """The folder of all entries."""
    return home.cache("published")


def problem() -> str | None:
    """Return why nothing can be kept and what to do; None if it can."""
    why = home.problem(directory())
    return why and f"{why}; pages are made anew each time; set {home.CACHE} to a folder that can"


def tidy() -> None:
    """Remove what no site has needed for long."""
    for path in directory().glob("*.json"):
        with contextlib.suppress(OSError):  # another process was first
            if time.time() - path.stat().st_mtime > DAYS * 86_400:
                path.unlink()


def once(parts: Any, make: Callable[[], Any]) -> Any:
    """Return what `make` gives, a JSON value, made only once for what it is made from: `parts`, another one.

    NaN and infinities are null in it, as on the pages. Where nothing can be kept, it is made each time.
    """
    path = directory() / f"{digest(orjson.dumps(parts))}.json"
    with contextlib.suppress(OSError, ValueError):
        found = orjson.loads(path.read_bytes())
        os.utime(path)
        return found
    made = orjson.dumps(make())
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        whole.write(path, made, is_kept=False)
    return orjson.loads(made)


class Kept:
    """What was made of some commits of a machine.

    Parameters
    ----------
    folder : Path
        Where the results of the machine are, beside those of others.
    known : collection of str
        The commits that git knows.
    head : str
        The commit that is checked out: for it, the acknowledgements in the folder count.
    """

    def __init__(self, folder: Path, known: Collection[str], head: str) -> None:
        machines = [each.parent for each in reading.listed(folder.parent, "*/machine.json")]
        own = [path for file in (record.FILE, record.FINGERPRINTS_FILE) for path in record.paths(folder, file)]
        told = [path for each in machines for path in record.paths(each, record.CUBINS_FILE)]
        #: Commit -> the lines that name it. A cubin may be told by any machine.
        self._lines: dict[str, list[str]] = defaultdict(list)
        for path in [*own, *told]:
            for line in path.read_bytes().splitlines():
                for commit in set(_HASH.findall(line)):
                    self._lines[commit.decode()].append(f"{path.parent.name} {path.name} {digest(line)}")
        self._folder, self._known, self._head = folder, known, head
        files = (folder.parent / SUITE, acknowledged.beside(folder.parent) / acknowledged.FILE)
        runs = [record.read(each.parent, each.name) for each in machines]
        self._shared = [
            folder.name,
            code(),
            settings.limits(),
            list(map(of_file, files)),
            [sorted({str(run.get("nvcc")) for run in each}) for each in runs],
        ]

    def of(self, commits: Iterable[str], more: Any, make: Callable[[], Any]) -> Any:
        """Return what `make` gives of some commits and of what `more` names, made only `once`."""
        return once([self._shared, [self._of(one) for one in commits], more], make)

    def _of(self, commit: str) -> list[Any]:
        files = [(path.name, of_file(path)) for path in sorted(self._folder.glob(f"{commit[:8]}-*.json"))]
        return [commit, files, self._lines[commit], commit in self._known, commit == self._head]


@functools.cache
def code(root: Path = ROOT) -> str:
    """Return the digest of all code that a review may depend on."""
    elsewhere = [] if _LIBRARY.is_relative_to(root) else [_LIBRARY]  # installed, as in most projects
    folders = [*(root / folder for folder in _CODE), *elsewhere]
    files = ((path.relative_to(folder), path) for folder in folders for path in sorted(folder.rglob("*.py")))
    return digest(orjson.dumps([*((str(name), of_file(path)) for name, path in files), *_versions()]))


def _versions() -> list[str]:
    return [version(package) for package in _PACKAGES]


def digest(content: bytes) -> str:
    """Return the SHA-256 of a content."""
    return hashlib.sha256(content).hexdigest()


def of_file(path: Path) -> str:
    """Return that of a file's; empty if there is none."""
    return digest(path.read_bytes()) if path.exists() else ""
