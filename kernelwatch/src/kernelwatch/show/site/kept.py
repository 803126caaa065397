"""The reviews of a machine's commits, kept as long as nothing changes that they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from kernelwatch.config import cache_dir, settings
from kernelwatch.config.project_root import ROOT
from kernelwatch.review import acknowledged
from kernelwatch.store import git
from kernelwatch.store.reading import SUITE
from kernelwatch.store.results import History
from ptxcount.util import atomic_write

#: Seconds after which a file is removed that no publishing has written.
_OLD = 30 * 86_400
_LIBRARY = Path(__file__).parents[2]


def reviews(history: History, review: Callable[[str], Any], root: Path = ROOT) -> list[Any]:
    """Return what `review` says of each commit of a history, a JSON value; it is only asked where that may be new."""
    path = cache_dir.cache_folder("published") / f"{_digest(str(history.folder.resolve()), history.machine)}.json"
    known: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        known = dict(orjson.loads(path.read_bytes()))
    every = keys(history, root)
    found = {key: known[key] if key in known else review(commit) for commit, key in every.items()}
    made = orjson.dumps(found)
    if found.keys() != known.keys():
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            for each in path.parent.glob("*.json"):
                if time.time() - each.stat().st_mtime > _OLD:
                    each.unlink()
            atomic_write.write(path, made, is_kept=False)
    return list(orjson.loads(made).values())


def keys(history: History, root: Path = ROOT) -> dict[str, str]:
    """Return of each commit the digest of what its review depends on: results up to it, benchmarks, settings, code.

    What is acknowledged is read from the folder if that is the checked out commit, else from git's history.
    """
    files: dict[str, list[str]] = {}
    for path in sorted(filter(Path.is_file, history.folder.iterdir())):
        is_of_commit = path.name[8:9] == "-"
        files.setdefault(path.name[:8] if is_of_commit else "", []).append(f"{path.name} {_content(path)}")
    shared = [history.results / SUITE, root / "pyproject.toml", root / "asv.conf.json"]
    common = _digest(history.machine, _code(root), *map(_content, shared), *files.get("", ()))
    commits = history.commits()
    before = history.graph.parents or {
        commit: [older] if older else [] for older, commit in itertools.pairwise(["", *commits])
    }
    line: dict[str, str] = {}
    for commit, parents in before.items():
        line[commit] = _digest(commit, *files.get(commit[:8], ()), *(line.get(each, "") for each in parents))
    head = git.asked(root, "rev-parse", "HEAD")
    entries = _content(acknowledged.beside(history.results) / acknowledged.FILE)
    return {each: _digest(common, line.get(each, each), entries if each == head else "") for each in commits}


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@cache
def _code(root: Path) -> str:
    """Return the digest of this library's code, and of the project's."""
    folders = (_LIBRARY, *(root / each for each in settings.code_folders()))
    return _digest(*map(_content, sorted({path for folder in folders for path in folder.rglob("*.py")})))
