"""The reviews of a machine's commits, kept as long as nothing changes that they depend on."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from kernelwatch.config import cache_dir
from kernelwatch.store import git
from kernelwatch.store.index import digest_code, digest_file, digest_texts
from kernelwatch.store.reading import BENCHMARKS_FILE
from kernelwatch.store.results import History
from kernelwatch.store.source_changes import ACKNOWLEDGED_FILE, locate_project
from ptxcount.util import atomic_write

#: Seconds after which a file is removed that no publishing has written.
_OLD = 30 * 86_400


def reviews(history: History, review: Callable[[str], Any], root: Path) -> list[Any]:
    """Return what `review` says of each commit of a history, a JSON value; it is only asked where that may be new."""
    path = cache_dir.cache_folder("published") / f"{digest_texts(str(history.folder.resolve()), history.machine)}.json"
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


def keys(history: History, root: Path) -> dict[str, str]:
    """Return of each commit the digest of what its review depends on: results up to it, benchmarks, settings, code.

    What is acknowledged is read from the folder if that is the checked out commit, else from git's history.
    """
    files: dict[str, list[str]] = {}
    for path in sorted(filter(Path.is_file, history.folder.iterdir())):
        is_of_commit = path.name[8:9] == "-"
        files.setdefault(path.name[:8] if is_of_commit else "", []).append(f"{path.name} {digest_file(path)}")
    shared = [history.results / BENCHMARKS_FILE, root / "pyproject.toml", root / "asv.conf.json"]
    common = digest_texts(history.machine, digest_code(root), *map(digest_file, shared), *files.get("", ()))
    commits = history.list_commits()
    before = history.graph.parents or {
        commit: [older] if older else [] for older, commit in itertools.pairwise(["", *commits])
    }
    line: dict[str, str] = {}
    for commit, parents in before.items():
        line[commit] = digest_texts(commit, *files.get(commit[:8], ()), *(line.get(each, "") for each in parents))
    head = git.try_text(root, "rev-parse", "HEAD")
    entries = digest_file(locate_project(history.results, root) / ACKNOWLEDGED_FILE)
    return {each: digest_texts(common, line.get(each, each), entries if each == head else "") for each in commits}
