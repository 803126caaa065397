"""The cache of reviews: the review of a commit is reused until one of its inputs changes."""

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
from kernelwatch.store.record import CUBINS_FILE
from kernelwatch.store.results import History
from kernelwatch.store.source_changes import ACKNOWLEDGED_FILE, locate_project
from ptxcount.util import atomic_write

#: Seconds after which an unused file of the cache is removed.
_MAX_AGE = 30 * 86_400


def load_reviews(history: History, review: Callable[[str], Any], root: Path) -> list[Any]:
    """Return the JSON value of `review(commit)` for each commit, from the cache if its inputs are unchanged."""
    path = cache_dir.cache_folder("published") / f"{digest_texts(str(history.folder.resolve()), history.machine)}.json"
    cached: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        cached = dict(orjson.loads(path.read_bytes()))
    commit_keys = compute_keys(history, root)
    reviews_by_key = {key: cached[key] if key in cached else review(commit) for commit, key in commit_keys.items()}
    encoded = orjson.dumps(reviews_by_key)
    if reviews_by_key.keys() != cached.keys():
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            for file in path.parent.glob("*.json"):
                if time.time() - file.stat().st_mtime > _MAX_AGE:
                    file.unlink()
            atomic_write.write(path, encoded, is_kept=False)
    return list(orjson.loads(encoded).values())


def compute_keys(history: History, root: Path) -> dict[str, str]:
    """Return each commit's digest of its review's inputs: results up to the commit, benchmarks, settings and code.

    Other machines' hashes of machine code are among the results. Acknowledgements of the checked out commit count as
    they are in the folder. All others are in git's history.
    """
    files: dict[str, list[str]] = {}
    cubins = (path for path in history.results.glob(f"*/*{CUBINS_FILE}") if path.parent != history.folder)
    for path in sorted([*filter(Path.is_file, history.folder.rglob("*")), *cubins]):
        is_of_commit = path.name[8:9] == "-"
        files.setdefault(path.name[:8] if is_of_commit else "", []).append(f"{path.name} {digest_file(path)}")
    shared = [history.results / BENCHMARKS_FILE, root / "pyproject.toml", root / "asv.conf.json"]
    identity = history.machine, str(history.compiler), digest_code(root)
    common = digest_texts(*identity, *map(digest_file, shared), *files.get("", ()))
    commits = history.list_commits()
    parents_by_commit = history.graph.parents or {
        commit: [older] if older else [] for older, commit in itertools.pairwise(["", *commits])
    }
    lineage: dict[str, str] = {}
    for commit, parents in parents_by_commit.items():
        inherited = (lineage.get(parent, "") for parent in parents)
        lineage[commit] = digest_texts(commit, *files.get(commit[:8], ()), *inherited)
    head = git.try_text(root, "rev-parse", "HEAD")
    acknowledged = digest_file(locate_project(history.results, root) / ACKNOWLEDGED_FILE)
    return {
        commit: digest_texts(common, lineage.get(commit, commit), acknowledged if commit == head else "")
        for commit in commits
    }
