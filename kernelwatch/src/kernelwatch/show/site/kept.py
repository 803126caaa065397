"""The reviews of a machine's commits, kept as long as nothing changes that they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from kernelwatch import home, settings
from kernelwatch.project import ROOT
from kernelwatch.review import acknowledged
from kernelwatch.store import git
from kernelwatch.store.reading import SUITE
from kernelwatch.store.results import History
from ptxcount import whole

#: Seconds after which an entry is removed.
_OLD = 30 * 86_400
_LIBRARY = Path(__file__).parents[2]


def state(history: History, root: Path = ROOT) -> str:
    """Return the digest of what a machine's reviews depend on: results, acknowledgements, settings, code, ancestors.

    Which commit is checked out matters only if it was measured: what is acknowledged is then read from the folder.
    """
    head, measured = git.asked(root, "rev-parse", "HEAD"), history.commits()
    facts = [history.machine, head if head in measured else "", measured, history.graph.parents]
    found = hashlib.sha256(orjson.dumps(facts))
    for path in filter(Path.is_file, _paths(history, root)):
        found.update(f"{path.parent.name}/{path.name} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _paths(history: History, root: Path) -> Iterator[Path]:
    yield from (history.results / SUITE, *sorted(history.folder.rglob("*")))
    yield from (root / "pyproject.toml", root / "asv.conf.json")
    yield acknowledged.beside(history.results) / acknowledged.FILE
    folders = (_LIBRARY, *(root / each for each in settings.code()))
    yield from sorted({path for folder in folders for path in folder.rglob("*.py")})


def once(key: str, make: Callable[[], Any]) -> Any:
    """Return what `make` gives, a JSON value, made only once for a key."""
    path = home.cache("published") / f"{key}.json"
    with contextlib.suppress(OSError, ValueError):
        return orjson.loads(path.read_bytes())
    made = orjson.dumps(make())
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        for each in path.parent.glob("*.json"):
            if time.time() - each.stat().st_mtime > _OLD:
                each.unlink()
        whole.write(path, made, is_kept=False)
    return orjson.loads(made)
